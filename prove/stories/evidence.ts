import type { Evidence, LedgerOrder, Said } from './examiner.ts';
import type { Life } from './life.ts';
import type { OrderPlan, Plan } from './plan.ts';
import type { Service } from './service.ts';
import type { Shop } from './shop.ts';

export type World = { plan: Plan; service: Service; shop: Shop; life: Life; startedMs: number };

/** What needs a person because of the shop or of the service's answers excuses no money, and is no false alarm. */
const OF_MONEY = ['money', 'unsettled'];

/** What the three say now; null if settled does not answer. */
export async function gather(
  { plan, service, shop, life }: World,
  accepted: Set<string>,
  shopWellAtMs: number,
): Promise<Evidence | null> {
  const served = await life.whole();
  const list = await served.ask('/v1/attention?limit=200');
  if (list?.status !== 200) return null;
  const settled = new Map<string, Said>();
  for (const { reference } of plan.orders) {
    const paths = ['', '/timeline'].map((end) => served.ask(`/v1/orders/${reference}${end}`));
    const [order, timeline, events] = await Promise.all([
      ...paths,
      served.ask(`/v1/events?reference=${reference}&limit=200`),
    ]);
    if (order?.status === 404) continue;
    if (order?.status !== 200 || timeline?.status !== 200 || events?.status !== 200) return null;
    const mine = list.body.attention.filter(
      (one: { reference: string | null; concern: string }) =>
        one.reference === reference && OF_MONEY.includes(one.concern),
    );
    const { state, flags, paidAt, paymentsTotal, holds } = order.body.order;
    settled.set(reference, {
      state,
      flags,
      paidAt,
      sums: paymentsTotal.sums,
      holds: holds.map(({ reason }: { reason: string }) => reason),
      attention: mine.map(({ kind, reason }: { kind: string; reason: string | null }) => reason ?? kind),
      text: JSON.stringify([order.body, timeline.body, mine]),
      events: events.body.events,
    });
  }
  const ledger = plan.orders.map((order) => ledgerOf(service, shop, order));
  const { sentence } = list.body.summary;
  const attention = list.body.attention.map(({ kind }: { kind: string }) => kind);
  return {
    ledger,
    shop: shop.record,
    settled,
    attention,
    summary: sentence,
    accepted,
    shopWellAtMs,
    nowMs: Date.now(),
  };
}

function ledgerOf(service: Service, shop: Shop, { reference, cents, kind }: OrderPlan): LedgerOrder {
  const link = service.linkOf(reference);
  return {
    reference,
    asked: { cents, currency: 'BRL' },
    counted: service.counted.get(reference) ?? [],
    returned: service.returned.get(reference) ?? [],
    linkStatus: link?.status ?? 'none',
    isMisnamed: link?.misnamed != null,
    hasExpired: link?.status === 'EXPIRED',
    acknowledged: service.acknowledged.get(reference) ?? [],
    eventsAreRight: kind !== 'less-in-event' && !shop.record.cancelled.has(reference),
  };
}
