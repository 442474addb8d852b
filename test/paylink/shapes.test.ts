import { describe, expect, it } from 'vitest';
import type { SettlementPolicy } from '../../src/domain/decision.ts';
import { saysTooLittle } from '../../src/domain/fact.ts';
import { parseBodyExactly } from '../../src/json.ts';
import { readEvent } from '../../src/paylink/events.ts';
import { API, anOrder, EVENT, NO_API, step } from '../support/orders.ts';
import { type End, SHAPES, type Shape } from './wire_shapes.ts';

const ABOUT = { reference: 'order-1', linkId: 'pl_1' };

/** What a shape says of an order, and what the rules make of that. The flow test has what becomes of some at the API. */
function endOf({ body }: Shape, policy: SettlementPolicy): { end: object; asks: boolean } {
  const parsed = parseBodyExactly(Buffer.from(body(ABOUT)));
  if (parsed === undefined) return { end: { is: 'unread', why: 'not readable JSON' }, asks: true };
  const said = readEvent(parsed);
  const { linkIds, facts, notUnderstood, linkChanged } = said;
  if (linkIds.some((id) => id !== ABOUT.linkId)) return { end: { is: 'attention', kind: 'link_mismatch' }, asks: true };
  if (notUnderstood !== null) expect(facts).toEqual([]);
  if (notUnderstood !== null) return { end: { is: 'unread', why: notUnderstood }, asks: saysTooLittle(said) };
  let order = anOrder({ reference: ABOUT.reference });
  let asks = saysTooLittle(said) || linkChanged;
  for (const fact of facts) {
    const { made, order: after } = step(order, { ...fact, authority: EVENT }, policy);
    asks ||= made.effects.some((effect) => effect.do === 'check');
    order = after;
  }
  const [money] = order.entries;
  if (order.state === 'paid') expect(money).toMatchObject({ amountMinor: 10_000, currency: 'BRL' });
  const { state, flags, holds } = order;
  if (state === 'paid') return { end: { is: 'paid', flags }, asks };
  return { end: state === 'held' ? { is: 'held', reason: holds[0]?.reason } : { is: 'understood' }, asks };
}

function expected(end: End): object {
  if (end.is === 'unread') return { is: 'unread', why: expect.stringMatching(end.why) };
  if (end.is === 'paid') return { is: 'paid', flags: end.flags ?? [] };
  return end.is === 'understood' ? { is: end.is } : end;
}

describe('an event of any shape', () => {
  it('is one of at least 110, each of another name', () => {
    expect(new Set(SHAPES.map(({ name }) => name)).size).toBe(SHAPES.length);
    expect(SHAPES.length).toBeGreaterThanOrEqual(110);
  });

  it.each(SHAPES.map((shape) => [shape.name, shape] as const))('%s', (_name, shape) => {
    expect(endOf(shape, NO_API).end).toEqual(expected(shape.ends));
    const { end, asks } = endOf(shape, API);
    // What no answer can make better is settled, and what is doubtful is asked about before anything is held.
    if (shape.ends.is === 'paid') expect(end).toEqual(expected(shape.ends));
    if (shape.ends.is === 'held') expect([asks, (end as End).is]).toEqual([true, 'understood']);
    if (shape.ends.is === 'unread' || shape.ends.is === 'attention') expect(asks).toBe(true);
  });
});
