import { setTimeout as after } from 'node:timers/promises';
import { freePort } from '../../test/support/network.ts';
import { lookFor } from '../harness/wait.ts';
import { gather, type World } from './evidence.ts';
import { examine, examineWithoutApi } from './examiner.ts';
import { Life } from './life.ts';
import type { OrderPlan, Plan } from './plan.ts';
import { Service } from './service.ts';
import { Shop } from './shop.ts';
import { LINK_CHANGED, type Link, PAYMENT_CHANGED, type Payment } from './wire.ts';

/** Plays one story, and has the examiner judge what is left. */

export type Outcome = { broken: string[]; counts: Record<string, number>; ms: number };

/** The examiner looks until everything fits, for so long. */
const FITS_WITHIN_MS = 120_000;
/** What is wrong although nothing moves any more stays wrong. */
const STILL_MS = 12_000;
const LOOK_EVERY_MS = 400;
const EXPIRES_AFTER_MS = 4_000;
const WITHOUT_API_MS = 45_000;
const DELIVERED_WITHIN_MS = 60_000;
/** A budget that is used up is free again within a minute. */
const CHECKED_WITHIN_MS = 70_000;

export async function runStory(plan: Plan, environment: Record<string, string>): Promise<Outcome> {
  const service = new Service(plan.ways);
  const shop = new Shop(plan.shop);
  await Promise.all([service.start(), shop.start()]);
  const hooks = `127.0.0.1:${await freePort()}`;
  const operator = `127.0.0.1:${await freePort()}`;
  const life = new Life({
    SETTLED_HOOKS_LISTEN: hooks,
    SETTLED_OPERATOR_LISTEN: operator,
    SETTLED_PUBLIC_URL: `http://${hooks}`,
    SETTLED_API_URL: service.url,
    SETTLED_API_KEY: 'key-of-the-stories',
    SETTLED_API_BUDGET_PER_MINUTE: '55',
    ...shop.environment(operator),
    ...environment,
  });
  const startedMs = Date.now();
  const world: World = { plan, service, shop, life, startedMs };
  try {
    service.onBusy = (what) => life.sees(what);
    shop.onBusy = () => life.sees('notice');
    await life.start(plan.kills);
    const broken = await play(world);
    const { calls, deliveries, forged, events } = service.counts;
    const counts = {
      orders: plan.orders.length,
      kills: life.kills,
      events,
      deliveries,
      forged,
      calls,
      notices: shop.record.told.length,
    };
    return {
      broken: [...broken, ...service.broken, ...shop.broken, ...life.broken],
      counts,
      ms: Date.now() - startedMs,
    };
  } finally {
    await life.stop();
    service.stop();
    shop.stop();
  }
}

async function play(world: World): Promise<string[]> {
  const { plan, service, shop, life } = world;
  const weather = [
    ...plan.apiOutages.map(({ atMs, forMs, how }) =>
      spell(atMs, forMs, (isOn) => {
        service.outage = isOn ? how : null;
      }),
    ),
    ...plan.shopOutages.map(({ atMs, forMs, how }) =>
      spell(atMs, forMs, (isOn) => {
        shop.outage = isOn ? how : null;
      }),
    ),
  ];
  await Promise.all([...weather, ...plan.orders.map((order) => serve(world, order))]);
  await life.endKills();
  const withoutApi = plan.endsWithoutApi ? await endWithoutApi(world) : [];
  const shopWellAtMs = Date.now();
  await lookFor(DELIVERED_WITHIN_MS, async () => !service.isDelivering);
  if (service.isDelivering) withoutApi.push('a genuine delivery is not acknowledged');
  await quiet(world);
  // Nobody tells settled of what its webhooks did not say: a person has it ask.
  for (const { reference } of plan.orders) await check(life, reference);
  await Promise.all(
    plan.orders.filter(({ kind }) => kind === 'expires-pending').map((order) => shop.openAgain(request(order))),
  );
  const first = await fits(world, new Set(), shopWellAtMs);
  const accepted = await decide(world);
  return [...withoutApi, ...first, ...(first.length === 0 ? await fits(world, accepted, shopWellAtMs) : [])];
}

/** Waits until settled has settled what it acknowledged: a dispute that it settles later would be newer than a check. */
async function quiet(world: World): Promise<void> {
  const waits = async (status: string) => {
    const answer = await (await world.life.whole()).ask(`/v1/events?status=${status}&limit=1`);
    return answer?.body?.events?.length !== 0;
  };
  const isQuiet = async () => !(await waits('pending')) && !(await waits('leased'));
  await lookFor(DELIVERED_WITHIN_MS, isQuiet, LOOK_EVERY_MS);
}

async function check(life: Life, reference: string): Promise<void> {
  const isChecked = async () => {
    const answer = await (await life.whole()).ask(`/v1/orders/${reference}/check`, {});
    return answer !== null && answer.status < 500;
  };
  await lookFor(CHECKED_WITHIN_MS, isChecked, LOOK_EVERY_MS);
}

async function spell(atMs: number, forMs: number, set: (isOn: boolean) => void): Promise<void> {
  await after(atMs);
  set(true);
  await after(forMs);
  set(false);
}

/** A customer and the order. */
async function serve({ service, shop, plan }: World, order: OrderPlan): Promise<void> {
  await after(order.atMs);
  if (!(await shop.open(request(order)))) return;
  const link = service.linkOf(order.reference);
  if (link === undefined)
    return void service.broken.push(`${order.reference} was opened, and the service has no such link`);
  link.fates = [...order.fates];
  link.asked = { ...link.asked, ulps: order.kind === 'double' && order.cents % 3 === 0 ? order.ulps : 0 };
  if (order.forged !== null) void service.forge(link, order.forged, service.linkOf(plan.orders[0]?.reference ?? ''));
  await after(order.takesMs);
  if (order.kind === 'unpaid') return;
  if (order.kind === 'paid-after-cancel' && !(await shop.cancel(order.reference))) return;
  const payment = service.begin(link, statedBy(order));
  if (order.method === 'PIX' || order.kind === 'expires-pending') service.tell(link, PAYMENT_CHANGED, payment);
  if (order.kind === 'expires-pending' || order.kind === 'late') {
    await after(Math.max(0, Date.parse(link.expiresAt ?? '') - Date.now()));
    link.status = 'EXPIRED';
    service.tell(link, LINK_CHANGED, null);
    if (order.kind === 'expires-pending') return;
  }
  await after(order.takesMs);
  if (order.kind === 'other-currency') link.misnamed = { currency: 'USD' };
  if (order.kind === 'other-reference') link.misnamed = { reference: `${order.reference}-of-another` };
  complete(service, link, payment, order);
  await after(order.takesMs);
  await afterwards(service, link, payment, order);
}

function request({ reference, cents, kind }: OrderPlan): { reference: string; amount: string; expiresAt?: string } {
  const amount = (cents / 100).toFixed(2);
  if (kind !== 'expires-pending' && kind !== 'late') return { reference, amount };
  // The same for each time that the shop asks: it is part of the request.
  const expiresAt = endOf.get(reference) ?? new Date(Date.now() + EXPIRES_AFTER_MS).toISOString();
  endOf.set(reference, expiresAt);
  return { reference, amount, expiresAt };
}
const endOf = new Map<string, string>();

function statedBy({
  kind,
  cents,
  otherCents,
  method,
  ulps,
}: OrderPlan): Pick<Payment, 'method' | 'quote' | 'quoteInEvents' | 'totalCents'> {
  const right = { cents, currency: 'BRL', ulps };
  const less = { ...right, cents: otherCents };
  if (kind === 'less') return { method, quote: less, quoteInEvents: null, totalCents: cents };
  if (kind === 'less-in-event') return { method, quote: right, quoteInEvents: less, totalCents: cents };
  const more = { ...right, cents: cents + otherCents };
  if (kind === 'interest') return { method: 'CREDIT_CARD', quote: more, quoteInEvents: null, totalCents: more.cents };
  if (kind === 'converted')
    return { method, quote: { ...less, currency: 'USD' }, quoteInEvents: null, totalCents: cents };
  if (kind === 'other-currency')
    return { method, quote: { ...right, currency: 'USD' }, quoteInEvents: null, totalCents: cents };
  return { method, quote: right, quoteInEvents: null, totalCents: cents };
}

/** The service adds the link's money to the merchant's balance, or the quote if that is less. */
function complete(service: Service, link: Link, payment: Payment, { kind, cents, otherCents }: OrderPlan): void {
  const currency = kind === 'other-currency' ? 'USD' : 'BRL';
  service.complete(link, payment, { cents: kind === 'less' ? otherCents : cents, currency });
  service.tell(link, PAYMENT_CHANGED, payment);
  service.tell(link, LINK_CHANGED, null);
}

async function afterwards(service: Service, link: Link, payment: Payment, order: OrderPlan): Promise<void> {
  const { kind, cents, otherCents } = order;
  if (kind === 'twice') {
    const second = service.begin(link, statedBy(order));
    complete(service, link, second, order);
  }
  if (kind === 'refunded' || kind === 'disputed' || kind === 'dispute-won') {
    service.giveBack(link, payment, kind === 'refunded' ? 'REFUNDED' : 'DISPUTED', cents);
    service.tell(link, PAYMENT_CHANGED, payment);
  }
  if (kind === 'refunded-in-part') {
    payment.quote = { ...payment.quote, cents: otherCents };
    service.giveBack(link, payment, 'REFUNDED', otherCents);
    service.tell(link, PAYMENT_CHANGED, payment);
  }
  if (kind === 'refunded-beside') {
    const part = service.begin(link, { ...statedBy(order), quote: { cents: otherCents, currency: 'BRL', ulps: 0 } });
    part.status = 'REFUNDED';
    part.completedAt = payment.completedAt;
    service.noteReturn(link, payment, otherCents);
    service.tell(link, PAYMENT_CHANGED, part);
  }
  if (kind === 'dispute-won') {
    await after(order.takesMs);
    service.winBack(link, payment);
    service.tell(link, PAYMENT_CHANGED, payment);
  }
}

/** The last kill, with the API off: what was acknowledged must be settled all the same. */
async function endWithoutApi(world: World): Promise<string[]> {
  const { life, service } = world;
  service.outage = 'off';
  life.killNow();
  let faults: string[] = [];
  const fits = async () => {
    const evidence = await gather(world, new Set(), Date.now());
    faults = evidence === null ? ['settled does not answer'] : examineWithoutApi(evidence);
    return faults.length === 0;
  };
  await lookFor(WITHOUT_API_MS, fits, LOOK_EVERY_MS);
  service.outage = null;
  return faults;
}

/** A person decides about held orders, as planned. Returns those that were accepted. */
async function decide({ plan, life }: World): Promise<Set<string>> {
  const accepted = new Set<string>();
  const served = await life.whole();
  for (const { reference, decision } of plan.orders) {
    const order = (await served.ask(`/v1/orders/${reference}`))?.body.order;
    if (decision === null || order?.state !== 'held') continue;
    const answer = await served.ask(`/v1/orders/${reference}/resolve`, { decision, reason: 'as the story goes' });
    if (decision === 'accept' && answer?.status === 200) accepted.add(reference);
  }
  return accepted;
}

/** Returns what does not fit in the end. */
async function fits(world: World, accepted: Set<string>, shopWellAtMs: number): Promise<string[]> {
  let [before, sinceMs, faults] = ['', Date.now(), ['nobody looked']];
  const isEnd = async () => {
    const evidence = await gather(world, accepted, shopWellAtMs);
    if (evidence === null) return false;
    faults = examine(evidence);
    const now = JSON.stringify([...evidence.settled]) + evidence.shop.told.length;
    if (now !== before) [before, sinceMs] = [now, Date.now()];
    const isWaiting = faults.some((fault) => fault.includes('has not been told') || fault.includes('is still'));
    return faults.length === 0 || (!isWaiting && Date.now() - sinceMs > STILL_MS);
  };
  await lookFor(FITS_WITHIN_MS, isEnd, LOOK_EVERY_MS);
  return faults;
}
