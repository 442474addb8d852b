import { describe, expect, it } from 'vitest';
import { eachAtOnce } from '../../prove/harness/wait.ts';
import type { ReservedLink, TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { UNSAID } from '../support/orders.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

const AT_ONCE = 24;

const theApp = sharedApp();

describe('the order in which events arrive', () => {
  it('does not matter: every permutation of them, copies included, ends in the same state', async () => {
    const settled = theApp();
    const sequences = permutations<Kind>(['created', 'pending', 'pending', 'completed', 'completed', 'refunded']);
    expect(sequences).toHaveLength(180);
    await eachAtOnce(AT_ONCE, [...sequences.entries()], async ([index, sequence]) => {
      const link = await settled.reserve(`order-${index}`);
      for (const kind of sequence) expect((await deliver(settled, link, kind)).status).toBe(200);
    });
    await allSettled(settled);
    const orders = await Promise.all(sequences.map((_, index) => standing(settled, `order-${index}`)));
    for (const [index, order] of orders.entries()) {
      expect(order, String(sequences[index])).toEqual(refunded(`order-${index}`));
    }
    expect((await settled.api('/v1/attention')).body.attention).toEqual([]);
  });

  it('does not matter if all arrive at once', async () => {
    const settled = theApp();
    const links = await Promise.all(Array.from({ length: 40 }, (_, n) => settled.reserve(`at-once-${n}`)));
    const kinds: Kind[] = ['refunded', 'completed', 'pending', 'created', 'completed', 'refunded', 'pending'];
    const answers = await Promise.all(links.flatMap((link) => kinds.map((kind) => deliver(settled, link, kind))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await allSettled(settled);
    for (const { reference } of links) expect(await standing(settled, reference)).toEqual(refunded(reference));
  });

  it('leaves a paid order paid when earlier events come late', async () => {
    const settled = theApp();
    const link = await settled.reserve('late-news');
    await deliver(settled, link, 'completed');
    await allSettled(settled);
    const paid = await settled.order('late-news');
    expect(paid.state).toBe('paid');
    await deliver(settled, link, 'pending');
    await deliver(settled, link, 'created');
    await allSettled(settled);
    expect(await settled.order('late-news')).toEqual(paid);
  });
});

type Kind = 'created' | 'pending' | 'completed' | 'refunded';

/** The same bytes for the same order and kind: what comes twice is a copy. */
function deliver(settled: TestApp, link: ReservedLink, kind: Kind): Promise<Response> {
  const { reference } = link;
  const linkId = `pl_${reference}`;
  if (kind === 'created') {
    const event = { id: `${reference}_created`, type: 'payment_link.created', data: { paymentLink: { id: linkId } } };
    return settled.deliver(link, JSON.stringify(event));
  }
  const body = paymentEvent({
    id: `${reference}_${kind}`,
    status: kind.toUpperCase(),
    paymentId: `pay_${reference}`,
    linkId,
    amount: '100.00',
  });
  return settled.deliver(link, body);
}

async function allSettled(settled: TestApp): Promise<void> {
  await eventually(async () => {
    const { events } = (await settled.api('/v1/stats')).body.stats;
    expect(events).toMatchObject({ pending: 0, leased: 0, dead: 0 });
  });
}

/** An order without its times and its number of changes, which differ. */
async function standing(settled: TestApp, reference: string): Promise<Record<string, unknown>> {
  const { createdAt: _, paidAt, version: __, ...order } = await settled.order(reference);
  return { ...order, wasPaid: paidAt !== null };
}

function refunded(reference: string): Record<string, unknown> {
  const money = { amount: '100.00', currency: 'BRL', customerPaid: null, ...UNSAID };
  const payment = { id: `pay_${reference}`, status: 'refunded', ...money };
  return {
    reference,
    state: 'refunded',
    flags: [],
    amount: '100.00',
    currency: 'BRL',
    customer: null,
    title: null,
    metadata: null,
    learnedBy: 'webhook',
    payment,
    payments: [payment],
    paymentsTotal: { count: 1, sums: [{ currency: 'BRL', captured: '100.00', balance: '0.00' }] },
    holds: [],
    hold: null,
    link: { id: `pl_${reference}`, url: null, shortUrl: null, status: null, expiresAt: null },
    wasPaid: true,
  };
}

/** Every different sequence of the items, of which some are alike. */
function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return [...new Set(items)].flatMap((first) => {
    const at = items.indexOf(first);
    return permutations(items.toSpliced(at, 1)).map((rest) => [first, ...rest]);
  });
}
