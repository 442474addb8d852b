import type { SentEvent } from '../harness/load.ts';
import type { Serving } from '../harness/settled.ts';
import { readFeed } from '../harness/shop.ts';
import { lookFor } from '../harness/wait.ts';

/** Asking goes by the budget of the API: 20 links in the first minute. */
const FOUND_WITHIN_MS = 150_000;
const ASK_AGAIN_MS = 100;

/** What a shop has read of the feed: its cursor, and of each order the highest version, and the state with it. */
type Shop = { cursor: string; orders: Map<string, { version: number; state: string }> };

export type Found = {
  /** Events that were acknowledged and are not in the restored store. */
  lost: number;
  /** Those of them that only repeat what the replica has: their order is paid there. */
  alreadyPaid: number;
  /** Orders of the others: which asking made paid, and whose links a person is shown. */
  foundByAsking: number;
  listedForAPerson: number;
  seconds: number;
  broken: string[];
};

export type Examined = {
  served: Serving;
  acknowledged: readonly SentEvent[];
  lost: readonly SentEvent[];
  /** Orders that are paid in the replica. */
  paid: ReadonlySet<string>;
  /** What the shop knew before the kill. */
  shop: Shop;
};

/** Reads the whole feed, as a shop that begins or was told to begin again. */
export async function readShop(served: Serving | null, shop: Shop = { cursor: '', orders: new Map() }): Promise<Shop> {
  const { notices, cursor } = await readFeed(() => served, shop.cursor);
  for (const { data } of notices) take(shop, data.order);
  return { ...shop, cursor };
}

function take({ orders }: Shop, { reference, version, state }: { reference: string; version: number; state: string }) {
  if (version > (orders.get(reference)?.version ?? 0)) orders.set(reference, { version, state });
}

/** Whether everything that was acknowledged is paid again, or shown to a person, and what the shop learns is right. */
export async function examineRestored({ served, acknowledged, lost, paid, shop }: Examined): Promise<Found> {
  const startedMs = performance.now();
  const broken: string[] = [];
  const gone = await served.ask(`/v1/feed?after=${shop.cursor}`);
  if (gone?.status !== 410) broken.push(`the cursor of before is answered ${gone?.status}`);
  const ofLost = new Set(lost.map(({ link }) => link.reference));
  const left = new Map(acknowledged.map(({ link }) => [link.reference, link.id]));
  const shown = new Set<string>();
  const isAllFound = async () => {
    const unknown = await unknownLinks(served);
    for (const [reference, linkId] of left) {
      const state = await stateOf(served, reference);
      if (state === 'paid') left.delete(reference);
      else if (state === null && unknown.has(linkId)) {
        left.delete(reference);
        shown.add(reference);
      }
    }
    return left.size === 0;
  };
  await lookFor(FOUND_WITHIN_MS, isAllFound, ASK_AGAIN_MS);
  for (const reference of left.keys()) {
    broken.push(`${reference} is ${await stateOf(served, reference)}, and no person is told of its link`);
  }
  broken.push(...(await whatTheShopMissed(served, shop, { shown, paid })));
  const found = [...ofLost].filter(
    (reference) => !paid.has(reference) && !shown.has(reference) && !left.has(reference),
  );
  return {
    lost: lost.length,
    alreadyPaid: lost.filter(({ link }) => paid.has(link.reference)).length,
    foundByAsking: found.length,
    listedForAPerson: [...shown].filter((reference) => ofLost.has(reference)).length,
    seconds: (performance.now() - startedMs) / 1000,
    broken,
  };
}

/** Null if there is no such order. */
async function stateOf(served: Serving, reference: string): Promise<string | null> {
  const answer = await served.ask(`/v1/orders/${reference}`);
  if (answer?.status === 404) return null;
  if (answer?.status !== 200) throw new Error(`${reference} is answered ${answer?.status}`);
  return answer.body.order.state;
}

async function unknownLinks(served: Serving): Promise<Set<string>> {
  const answer = await served.ask('/v1/attention?kind=link_not_known&limit=200');
  return new Set((answer?.body.attention ?? []).map(({ subject }: { subject: string }) => subject));
}

type Known = { shown: ReadonlySet<string>; paid: ReadonlySet<string> };

/**
 * A shop that applies a notice only if its version is above the one that it has must end with what settled has. What is
 * found again has a version above those that it had in the lost store.
 */
async function whatTheShopMissed(served: Serving, before: Shop, { shown, paid }: Known): Promise<string[]> {
  const known = new Map(before.orders);
  const shop = await readShop(served, { cursor: '', orders: before.orders });
  const missed: string[] = [];
  for (const [reference, { version, state }] of shop.orders) {
    if (shown.has(reference)) continue;
    const real = await stateOf(served, reference);
    if (state !== real)
      missed.push(`the shop believes that ${reference} is ${state} (version ${version}); it is ${real}`);
    const had = known.get(reference);
    const isFoundAgain = had?.state === 'paid' && !paid.has(reference);
    if (isFoundAgain && version <= had.version) missed.push(`${reference} was found again under version ${version}`);
  }
  return missed;
}
