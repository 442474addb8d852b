import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { environmentOf, say } from '../cli/settled.ts';
import { SHOP_SECRET, startCallback, verified } from '../support/callback.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { readableLog, samples } from '../support/observe.ts';
import { act, createLink, plan } from '../support/sandbox.ts';
import {
  allSettled,
  bindLink,
  cancel,
  check,
  pass,
  payLink,
  reserveLink,
  type Shop,
  sell,
  startProxiedShop,
  startShop,
} from '../support/shop.ts';

/** Every surface must say the same of each cause within this time. */
const WITHIN_MS = 10_000;

type Row = { cause: string; order: string; cells: string[] };
type Matter = { kind: string; reason: string | null; reference: string | null };

const PROOF = readFileSync(new URL('../../docs/proof.md', import.meta.url), 'utf8');
const HEADINGS = [
  'cause',
  'order',
  '`attention`',
  '`orders list`',
  '`why`',
  'doctor',
  'metrics',
  'log',
  'feed',
  'notices',
];

it('every surface says the same of what happened, as the table in docs/proof.md has it', async () => {
  const callback = await startCallback();
  const { log, lines } = readableLog();
  const { shop, proxy } = await startProxiedShop(startShop, { log, environment: callback.environment });
  const rows: Row[] = [];

  // While events come, neither the service's API nor the shop answers: which would be first depends on the machine.
  let eventsAreSettled = Promise.resolve();
  proxy.answerWith(async () => {
    await eventsAreSettled;
    return undefined;
  });
  async function hear(deed: () => Promise<unknown>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    eventsAreSettled = promise;
    await deed();
    await shop.sandbox.idle();
    await allSettled(shop);
    resolve();
  }
  const pay = (link: { id: string }) => hear(() => payLink(shop, link));

  async function see(cause: string, order: string): Promise<void> {
    await pass(shop, WITHIN_MS);
    rows.push({ cause, order, cells: await lookEverywhere(shop, order, lines) });
  }

  callback.answerWith((notice, response) => {
    const isOurs = isSignedWith(OTHER_SECRET, notice);
    void eventsAreSettled.then(() => response.writeHead(isOurs ? 204 : 401).end(isOurs ? '' : 'bad signature'));
    return undefined;
  });
  await pay(await sell(shop, 'tea'));
  await see('the shop has another secret', 'tea');

  callback.answerWith((_, response) => void eventsAreSettled.then(() => response.socket?.destroy()));
  await pay(await sell(shop, 'cake'));
  await see('the shop is down', 'cake');

  const bread = await sell(shop, 'bread');
  await plan(shop.sandbox, { fault: 'drop', match: { link: bread.id }, count: null });
  await pay(bread);
  await check(shop, 'bread');
  await see('its webhooks are lost, and the service is asked', 'bread');

  await pay(await sellFor(shop, 'rice', { asked: 150, link: 100 }));
  await see('less was paid than the order asks', 'rice');

  const salt = await sell(shop, 'salt');
  expect((await cancel(shop, 'salt')).status).toBe(200);
  await pay(salt);
  await see('it is paid after it was cancelled', 'salt');

  const soup = await reserveLink(shop, 'soup');
  const soupLink = await createLink(shop.sandbox, soup);
  await bindLink(shop, 'soup', soupLink);
  await pay(soupLink);
  await pass(shop, WITHIN_MS);
  const second = paymentEvent({ linkId: soupLink.id, paymentId: 'pay_second', amount: '100.00' });
  await hear(() => deliver(soup, second));
  await see('a second payment comes', 'soup');

  const fish = await sell(shop, 'fish');
  await pay(fish);
  await pass(shop, WITHIN_MS);
  await hear(() => act(shop.sandbox, fish, 'refund'));
  await check(shop, 'fish');
  await see('its payment is refunded', 'fish');

  for (const reference of ['eggs', 'milk']) {
    const link = await reserveLink(shop, reference);
    const { id } = await createLink(shop.sandbox, link);
    await bindLink(shop, reference, { id });
    const forged = { ...link, webhookSecret: 'the-secret-of-somebody-else-entirely' };
    await deliver(forged, paymentEvent({ linkId: id, amount: '100.00' }), 401);
  }
  // The log has a line a second for all of one reason.
  await pass(shop, 1_000);
  await see('its deliveries are refused, as those of another order', 'milk');

  const corn = await reserveLink(shop, 'corn');
  await deliver(corn, '{"id":"evt_corn","type":"something.else","data":{"whatever":[1]}}');
  await see('an event comes that settled does not understand', 'corn');

  const table = markdown(rows);
  if (!PROOF.includes(table)) process.stderr.write(`${table}\n`);
  expect(PROOF).toContain(table);

  callback.answerWith(204);
  await pass(shop, 30 * 60_000, 60_000);
  expect(await kindsOf(shop)).not.toContain('shop_refuses_notices');
  await decideAll(shop);
  await pass(shop, WITHIN_MS);
  const { text } = await say(['attention'], environmentOf(shop.settled));
  expect(text).toBe('Nothing needs attention.\n');
  expect((await doctorOn(shop, 'needs a person')).detail).toBe('Nothing needs attention.');
  expect((await doctorOn(shop, 'shop')).detail).toMatch(
    /^the shop takes its notices, the last at \S+; 0 are on their way$/,
  );
  expect(await needsInMetrics(shop)).toBe('nothing');
});

const OTHER_SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;

function isSignedWith(secret: string, notice: Parameters<typeof verified>[0]): boolean {
  try {
    verified(notice, secret);
    return true;
  } catch {
    expect(() => verified(notice, SHOP_SECRET)).not.toThrow();
    return false;
  }
}

async function deliver(link: { webhookUrl: string; webhookSecret: string }, body: string, status = 200): Promise<void> {
  const headers = { 'content-type': 'application/json', ...signedHeaders(link.webhookSecret, body) };
  expect((await fetch(link.webhookUrl, { method: 'POST', headers, body })).status).toBe(status);
}

/** The link is made for another amount than the order asks, as by a mistake in the shop. */
async function sellFor(shop: Shop, reference: string, { asked, link }: { asked: number; link: number }) {
  const fields = await reserveLink(shop, reference, { amount: asked });
  const made = await createLink(shop.sandbox, { ...fields, amount: link });
  await bindLink(shop, reference, made, { amount: asked });
  return made;
}

type Line = { msg: string; order?: string; orders?: string[] };

/** What each surface says of an order; throws if two of them differ in what both say. */
async function lookEverywhere(shop: Shop, reference: string, lines: readonly Line[]): Promise<string[]> {
  const { api } = shop.settled;
  const list = (await api('/v1/attention?limit=200')).body;
  const listed = (await api(`/v1/orders?q=${reference}`)).body.orders[0];
  const { answer, order } = (await api(`/v1/orders/${reference}/timeline`)).body;
  const { attention: _, ...document } = listed;
  expect(order).toEqual(document);

  const own = (list.attention as Matter[]).filter((matter) => matter.reference === reference);
  const needs = own.map(({ kind, reason }) => (reason === null ? kind : `${kind}: ${reason}`));
  const held = listed.hold === null ? [] : [`hold: ${listed.hold.reason}`];
  expect([...held, ...listed.attention].toSorted()).toEqual(needs.toSorted());

  const counted = groupsOf(list.groups);
  expect(await needsInMetrics(shop)).toBe(counted);
  const doctor = (await doctorOn(shop, 'needs a person')).detail;
  const { sentence } = list.summary as { sentence: string };
  const isNone = list.groups.length === 0;
  expect(withoutTimes(doctor)).toBe(withoutTimes(isNone ? sentence : `${sentence} See: settled attention`));

  const told = await lastNotice(shop, reference);
  const { notices, shop: callback } = (await api(`/v1/notices?reference=${reference}`)).body;
  expect(callback).not.toBe(null);
  expect(notices[0]?.type).toBe(told?.type);
  const shopFinding = await doctorOn(shop, 'shop');
  const isRefused = (list.attention as Matter[]).some(({ kind }) => kind === 'shop_refuses_notices');
  expect(shopFinding.status === 'failing').toBe(isRefused);

  // The id of a link comes with its registration or with its first event, whichever is first.
  const isAbout = ({ order, orders }: Line) => order === reference || orders?.includes(reference) === true;
  const about = lines.filter((line) => isAbout(line) && line.msg !== 'link is open');
  // The shop gets its notice while the service continues; the order of the two depends on the machine.
  const [telling, events] = [about.filter((line) => 'notice' in line), about.filter((line) => !('notice' in line))];
  // While the shop is known to take nothing, each further refusal is a line for debugging: chance decides which comes first.
  const logged = [...events, ...telling].filter(
    ({ msg }) => msg !== 'the shop did not take a notice; it is sent again',
  );
  const others = (list.attention as Matter[]).filter((matter) => matter.reference === null).map(({ kind }) => kind);
  return [
    [...needs, ...others].join(', ') || '–',
    [...new Set([listed.state, ...held, ...listed.flags, ...listed.attention])].join(', '),
    withoutTimes(answer),
    `${withoutTimes(sentence)} Shop: ${shopFinding.status}.`,
    counted,
    [...new Set(logged.map(({ msg }) => msg))].join('; ') || '–',
    told === undefined ? '–' : `${told.type}: ${told.data.order.state}`,
    notices.toReversed().map(noticeWords).join(', ') || '–',
  ];
}

type Notice = { type: string; status: string; fault: { code: string } | null };

function noticeWords({ type, status, fault }: Notice): string {
  return `${type} ${status}${fault === null ? '' : ` (${fault.code})`}`;
}

function groupsOf(groups: readonly { kind: string; count: number }[]): string {
  const sums = new Map<string, number>();
  for (const { kind, count } of groups) sums.set(kind, (sums.get(kind) ?? 0) + count);
  return [...sums].map(([kind, count]) => `${kind} ${count}`).join(', ') || 'nothing';
}

async function needsInMetrics(shop: Shop): Promise<string> {
  const all = samples((await shop.settled.api('/metrics')).body);
  const found = Object.entries(all).flatMap(([name, value]) => {
    const kind = /^settled_needs_person\{.*kind="(\w+)"\}$/.exec(name)?.[1];
    return kind === undefined || value === 0 ? [] : [`${kind} ${value}`];
  });
  return found.join(', ') || 'nothing';
}

async function doctorOn(shop: Shop, name: string): Promise<{ status: string; detail: string }> {
  const { checks } = (await shop.settled.api('/v1/admin/doctor')).body;
  return checks.find((one: { name: string }) => one.name === name);
}

async function kindsOf(shop: Shop): Promise<string[]> {
  const { groups } = (await shop.settled.api('/v1/attention')).body;
  return groups.map(({ kind }: { kind: string }) => kind);
}

type Told = { type: string; data: { order: { reference: string; state: string } } };

async function lastNotice(shop: Shop, reference: string): Promise<Told | undefined> {
  const { notices } = (await shop.settled.api('/v1/feed?limit=1000')).body;
  return (notices as Told[]).findLast(({ data }) => data.order.reference === reference);
}

/** A person decides what is held, and ends what was looked at. */
async function decideAll(shop: Shop): Promise<void> {
  const { api } = shop.settled;
  for (let round = 0; round < 3; round++) {
    const { attention } = (await api('/v1/attention?limit=200')).body;
    for (const { id, kind, reference } of attention) {
      if (kind === 'hold') {
        await api(`/v1/orders/${reference}/resolve`, { body: { decision: 'reject', reason: 'no' } });
      } else await api(`/v1/attention/${id}/end`, { body: { reason: 'seen' } });
    }
  }
}

function withoutTimes(text: string): string {
  return text
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'T')
    .replace(/\bpay_[0-9a-f]{24}\b/g, 'P')
    .replace(/; the oldest has waited .+? (?:s|min|h|d)\./, '.');
}

function markdown(rows: readonly Row[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [
    line(HEADINGS),
    `|${'---|'.repeat(HEADINGS.length)}`,
    ...rows.map(({ cause, order, cells }) => line([cause, `\`${order}\``, ...cells])),
  ].join('\n');
}
