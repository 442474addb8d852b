import { type Answer, payUrlOf, settledClient } from '../../client/settled.ts';
import { eachAtOnce } from '../../prove/harness/wait.ts';
import { OPERATOR_TOKEN, SHOP_TOKEN, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { ask } from '../support/http.ts';
import { eventually } from '../support/timing.ts';
import { ASKED, readStep, type Script, type Step } from './money_cases.ts';

/** Brings the orders of the table of money into their cases, and reads what each surface says of them. */

type Order = Answer<'listOrders'>['orders'][number];
type Notice = Answer<'readFeed'>['notices'][number];
// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
type Json = any;

export type Case = { reference: string; script: Script };

type Preview = { status: number; body: Json };

/** What the surfaces say of one order. */
export type Said = {
  order: Order;
  notices: Notice[];
  csv: Record<string, string>;
  /** The cells of the console's row, by the names of their columns. */
  row: Record<string, string>;
  page: string;
  timeline: Json;
  matters: { kind: string; detail: string }[];
  /** Where a shop that asks the client sends the customer. */
  payUrl: string | null;
  previews: Readonly<Record<'accept' | 'reject', Preview>> | null;
};

const AT_ONCE = 6;
const PAGE = 200;

export const idOf = (reference: string, payment: string) => `pay_${reference}_${payment}`;

/** What a settled that could ask the service did first: a person can cancel an order only while the service has no payment. */
const isAskedFirst = ({ script }: Case) => script[0] === 'cancel';

export type Links = Map<string, Awaited<ReturnType<TestApp['reserve']>>>;

/** Reserves the links, and cancels what a person cancels first. */
export async function begin(settled: TestApp, cases: readonly Case[], links: Links): Promise<void> {
  await eachAtOnce(AT_ONCE, cases, async (one) => {
    const { reference } = one;
    links.set(reference, await settled.reserve(reference));
    if (!isAskedFirst(one)) return;
    await expectOk(settled, `/v1/orders/${reference}/cancel`, {});
  });
}

async function bind(settled: TestApp, reference: string): Promise<void> {
  await expectOk(settled, '/v1/links', { reference, amount: ASKED.amount, id: `pl_${reference}` });
}

/** Takes the orders through their scripts: all through the first step, then all through the second. */
export async function play(settled: TestApp, cases: readonly Case[], links: Links): Promise<void> {
  const steps = Math.max(...cases.map(({ script }) => script.length));
  for (let at = 0; at < steps; at++) {
    const going = cases.filter((one) => at < one.script.length && !(at === 0 && isAskedFirst(one)));
    await eachAtOnce(AT_ONCE, going, async ({ reference, script }) => {
      const step = readStep(script[at] as string);
      // The first event binds a link, whichever link it names.
      if (step.does === 'elsewhere' && script.slice(0, at).every((one) => one === 'cancel'))
        await bind(settled, reference);
      const body = eventOf(reference, step, script.slice(0, at).map(readStep));
      if (body === null) return await decide(settled, reference, step);
      const link = links.get(reference);
      const { status } = link === undefined ? { status: 0 } : await settled.deliver(onHooksOf(settled, link), body);
      if (status !== 200) throw new Error(`${reference}: ${script[at]} was answered ${status}`);
    });
    await eventually(async () => {
      const { events } = (await settled.api('/v1/stats')).body.stats;
      if (events.pending + events.leased > 0) throw new Error('events wait');
    });
  }
}

/** A settled that was started again listens at another port. */
function onHooksOf<L extends { webhookUrl: string }>({ hooksUrl }: TestApp, link: L): L {
  return { ...link, webhookUrl: `${hooksUrl}${new URL(link.webhookUrl).pathname}` };
}

const STATUS: Readonly<Record<string, string>> = {
  begin: 'PENDING',
  pay: 'COMPLETED',
  elsewhere: 'COMPLETED',
  refund: 'REFUNDED',
  dispute: 'DISPUTED',
};

/** The event of a step; null if a person makes it. A payment that goes back goes back with the sum that came. */
function eventOf(reference: string, { does, payment, amount, currency }: Step, before: readonly Step[]): string | null {
  const linkId = `pl_${does === 'elsewhere' ? 'other_' : ''}${reference}`;
  if (does === 'expire') {
    return `{"id":"evt_${reference}_x","type":"payment_link.status_changed","data":{"paymentLink":{"id":"${linkId}","status":"EXPIRED"}}}`;
  }
  const status = STATUS[does];
  if (status === undefined) return null;
  const known = before.find((one) => one.does === 'pay' && one.payment === payment) ?? { amount, currency };
  const money = known.amount === null ? {} : { amount: known.amount, currency: known.currency };
  return paymentEvent({ linkId, status, paymentId: idOf(reference, payment), ...money });
}

async function decide(settled: TestApp, reference: string, { does, payment }: Step): Promise<void> {
  const path = `/v1/orders/${reference}`;
  if (does === 'seen') {
    const matters = await allOf(settled, '/v1/attention', 'attention');
    const { id } = matters.find((one) => one.reference === reference && one.kind === payment);
    await expectOk(settled, `/v1/attention/${id}/end`, { reason: 'refunded in the panel' });
  } else await expectOk(settled, `${path}/resolve`, { decision: does, reason: 'seen in the panel' });
}

async function expectOk(settled: TestApp, path: string, body: object): Promise<void> {
  const answer = await settled.api(path, { body });
  if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${JSON.stringify(answer.body)}`);
}

async function read(settled: TestApp, path: string, own: Record<string, string>): Promise<string> {
  const response = await ask(`${settled.apiUrl}${path}`, { headers: own });
  if (response.status !== 200) throw new Error(`${path} was answered ${response.status}`);
  return await response.text();
}

/** Every row of a list. */
async function allOf(settled: TestApp, path: string, name: string): Promise<Json[]> {
  const all: Json[] = [];
  for (let cursor = ''; ; ) {
    const next = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const body = JSON.parse(
      await read(settled, `${path}?limit=${PAGE}${next}`, { authorization: `Bearer ${OPERATOR_TOKEN}` }),
    );
    all.push(...body[name]);
    if (body.nextCursor == null) return all;
    cursor = body.nextCursor;
  }
}

/** Decides the orders. Returns the statuses of the answers. */
export async function decideAll(
  { api }: TestApp,
  cases: readonly Case[],
  decisionOf: (one: Case) => string,
): Promise<Map<string, number>> {
  const answers = new Map<string, number>();
  await eachAtOnce(AT_ONCE, cases, async (one) => {
    const body = { decision: decisionOf(one), reason: 'seen in the panel' };
    answers.set(one.reference, (await api(`/v1/orders/${one.reference}/resolve`, { body })).status);
  });
  return answers;
}

/** What the first page and `settled attention` say of all orders together. */
export async function summaryOf({ api }: TestApp): Promise<string> {
  return (await api('/v1/attention')).body.summary.sentence;
}

/** What every surface says of the orders. */
export async function lookEverywhere(
  settled: TestApp,
  cookie: string,
  of?: readonly Case[],
): Promise<Map<string, Said>> {
  const wanted = of && new Set(of.map(({ reference }) => reference));
  const client = settledClient({ url: settled.apiUrl, token: SHOP_TOKEN });
  const orders: Order[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query = { limit: PAGE, ...(cursor === '' ? {} : { cursor }) };
    const page: Answer<'listOrders'> = await client.call('listOrders', { query });
    orders.push(...page.orders.filter(({ reference }) => wanted?.has(reference) ?? true));
    cursor = page.nextCursor;
  }
  const notices = new Map<string, Notice[]>();
  for await (const page of client.feed({ after: null, follow: false, limit: 1000 })) {
    for (const notice of page.notices) {
      const { reference } = notice.data.order;
      notices.set(reference, [...(notices.get(reference) ?? []), notice]);
    }
  }
  const csv = readCsv(await client.call('ordersCsv', {}));
  const matters = await allOf(settled, '/v1/attention', 'attention');
  const rows = await rowsOf(settled, cookie);
  const found = new Map<string, Said>();
  await eachAtOnce(AT_ONCE, orders, async (order) => {
    const { reference } = order;
    const page = await read(settled, `/orders/${reference}`, { cookie, 'accept-language': 'en' });
    const token = { authorization: `Bearer ${OPERATOR_TOKEN}` };
    const timeline = JSON.parse(await read(settled, `/v1/orders/${reference}/timeline`, token));
    found.set(reference, {
      order,
      notices: notices.get(reference) ?? [],
      csv: csv.get(reference) ?? {},
      row: rows.get(reference) ?? {},
      page,
      timeline,
      matters: matters.filter((matter) => matter.reference === reference),
      payUrl: payUrlOf(order),
      previews: order.state !== 'held' ? null : await previewsOf(settled, reference),
    });
  });
  return found;
}

async function previewsOf({ api }: TestApp, reference: string): Promise<Record<'accept' | 'reject', Preview>> {
  const path = `/v1/orders/${reference}/resolve`;
  const [accept, reject] = await Promise.all(
    (['accept', 'reject'] as const).map((decision) => api(path, { body: { decision, dryRun: true } })),
  );
  return { accept: accept as Preview, reject: reject as Preview };
}

/** A CSV's rows by their first column. No cell of these has a comma. */
function readCsv(text: string): Map<string, Record<string, string>> {
  const [head = '', ...lines] = text.split('\r\n').slice(0, -1);
  const names = head.split(',');
  return new Map(
    lines.map((line) => {
      const cells = line.split(',');
      return [cells[0] ?? '', Object.fromEntries(names.map((name, at) => [name, cells[at] ?? '']))];
    }),
  );
}

async function rowsOf(settled: TestApp, cookie: string): Promise<Map<string, Record<string, string>>> {
  const found = new Map<string, Record<string, string>>();
  for (let path: string | undefined = `/orders?limit=${PAGE}`; path !== undefined; ) {
    const markup: string = await read(settled, path, { cookie, 'accept-language': 'en' });
    for (const [, id = '', row = ''] of markup.matchAll(/<tr id="row-([^"]+)">(.*?)<\/tr>/gs)) {
      const cells = [...row.matchAll(/<td data-head="([^"]*)"[^>]*>(.*?)<\/td>/gs)];
      found.set(id, Object.fromEntries(cells.map(([, head, cell]) => [head, cell])));
    }
    path = /href="(\/orders\?[^"]*cursor=[^"]*)"[^>]*>\s*Next/s.exec(markup)?.[1]?.replaceAll('&amp;', '&');
  }
  return found;
}

/** The money in a piece of a page, `100.00 BRL` each. */
export function moneyIn(markup: string): string[] {
  const found = markup.matchAll(/<data class="money" value="([A-Z]{3}) (-?[\d.]+)">/g);
  return [...found].map(([, currency, amount]) => `${amount} ${currency}`);
}

/** A value of the card "settled counted" of an order's page; undefined if it is not there. */
export function countedOnPage(page: string, name: string): string | undefined {
  const card = /<h2>settled counted<\/h2>(.*?)<\/dl>/s.exec(page)?.[1] ?? '';
  return new RegExp(`<dt>${name}</dt><dd>(.*?)</dd>`, 's').exec(card)?.[1];
}
