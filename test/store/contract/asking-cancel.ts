import { beforeEach, expect, it } from 'vitest';
import { stated } from '../../support/orders.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export function cancelContract({ shared }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = shared();
    await world.forgetChecks();
  });

  it.each(['accept', 'reject'] as const)('%s ends link_withheld as well', async (decision) => {
    const link = await world.intend();
    expect(await world.finishOpening(link, world.made(), 'It is in another currency.')).toBe('bound');
    await world.settle(link, [said('completed', { linkMoney: stated('60.00') })]);
    await world.resolve(link, decision);
    expect(await world.state(link)).toBe(decision === 'reject' ? 'cancelled' : 'paid');
    expect(await world.kinds(link)).not.toContain('link_withheld');
  });

  it('cancels an order that nobody began to pay, and goes on asking about its link', async () => {
    const link = await world.openNew();
    expect(await world.cancel(link)).toMatchObject({ rule: 'cancelled', order: { state: 'cancelled' } });
    const told = await world.timeline(link);
    expect(told.notices).toMatchObject([{ type: 'order.cancelled' }]);
    expect(told.history.at(-1)).toMatchObject({ what: 'cancelled', cause: { kind: 'person' } });
    world.tick(2 * MINUTE_MS);
    expect(await world.claimChecks()).toMatchObject([{ linkKey: link.linkKey, reason: 'scheduled' }]);
  });

  it('ends the opening of an order whose link no request asked for', async () => {
    const link = await world.intend();
    const before = await world.timeline(link);
    expect(await world.cancel(link)).toMatchObject({
      outcome: 'decided',
      rule: 'cancelled',
      from: 'awaiting_payment',
      order: { state: 'cancelled', link: null },
    });
    const told = await world.timeline(link);
    expect(told.opening).toMatchObject({ status: 'done', attempt: before.opening?.attempt, fault: null });
    expect(told.history.map(({ what }) => what)).toEqual([
      'link is to be opened',
      'link is not opened any more',
      'cancelled',
    ]);
    expect(told.notices).toMatchObject([{ type: 'order.cancelled' }]);
    world.tick(DAY_MS);
    await expect(world.claimOpening(link)).rejects.toThrow('is not due');
    expect(await world.cancel(link)).toMatchObject({
      outcome: 'decided',
      rule: 'already_cancelled',
      from: 'cancelled',
    });
  });

  it.each<[string, (link: Link) => Promise<unknown>]>([
    ['is being opened', (link) => world.claimOpening(link)],
    ['may be there', (link) => world.retryOpening(link, { mayExist: true })],
    ['sent an event', (link) => world.deliver(link)],
    ['sent a stale event', (link) => world.store.recordHint(world.hint(link))],
  ])('waits where the link %s', async (_what, happen) => {
    const link = await world.intend();
    await happen(link);
    const before = await world.timeline(link);
    expect(await world.cancel(link)).toEqual({ outcome: 'opening', order: before.order });
    expect(await world.timeline(link)).toEqual(before);
  });

  it('cancels an order whose link is known, and goes on opening that; it knows no other order', async () => {
    const link = await world.intend();
    await world.settle(link, [], { linkIds: [world.name('plink')] });
    expect(await world.cancel(link)).toMatchObject({ outcome: 'decided', rule: 'cancelled' });
    expect((await world.timeline(link)).opening).toMatchObject({ status: 'pending' });
    expect(await world.cancel({ ...link, reference: 'nobody' })).toBeNull();
  });

  it('leaves an order as it is that was cancelled, or is paid', async () => {
    const link = await world.openNew();
    await world.cancel(link);
    const before = await world.timeline(link);
    expect(await world.cancel(link)).toMatchObject({ rule: 'already_cancelled' });
    expect(await world.timeline(link)).toEqual(before);
    const paid = await world.openNew();
    await world.settle(paid, [said('completed')]);
    expect(await world.cancel(paid)).toMatchObject({ rule: 'not_cancellable', order: { state: 'paid' } });
  });
}
