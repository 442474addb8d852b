import { describe, expect, it } from 'vitest';
import { ATTENTION_KINDS, concernOf, MATTER_KINDS, type MatterKind, MONEY_KINDS } from '../../src/domain/matter.ts';
import { type CountedMatters, inOrder, SUMMED_MAX, totalMoney } from '../../src/domain/matter_money.ts';

describe('kinds of matters', () => {
  it('are holds and every kind of attention, each once', () => {
    expect(MATTER_KINDS.toSorted()).toEqual(['hold', ...ATTENTION_KINDS].toSorted());
  });

  it('are about money if money is in a wrong state, or may be', () => {
    expect(MONEY_KINDS.toSorted()).toEqual([
      'amount_mismatch',
      'duplicate_payment',
      'hold',
      'money_unnamed',
      'refund_due',
      'service_disagrees',
      'status_unclear',
    ]);
  });

  it('are unsettled if what was not counted may have told of money', () => {
    const unsettled = MATTER_KINDS.filter((kind) => concernOf(kind) === 'unsettled');
    expect(unsettled).toEqual(['event_dead', 'event_not_understood', 'link_mismatch', 'event_conflict']);
  });

  it('have no concern if a later version wrote them', () => {
    for (const kind of ['of_a_later_version', 'toString', '__proto__']) expect(concernOf(kind)).toBeUndefined();
  });
});

it('groups are sorted by kind, money first and what a later version wrote last; then the oldest first', () => {
  const group = (kind: string, oldestAtMs: number) => ({ kind: kind as MatterKind, oldestAtMs });
  const sorted = [
    group('hold', 7),
    group('hold', 9),
    group('refund_due', 5),
    group('event_dead', 3),
    group('link_disabled', 2),
    group('a_later_kind', 1),
    group('b_later_kind', 1),
  ];
  expect(inOrder(sorted.toReversed())).toEqual(sorted);
});

function groupOf(kind: MatterKind, count: number): CountedMatters {
  return { kind, reason: kind === 'hold' ? 'amount_mismatch' : null, count, oldestAtMs: 1 };
}

const isWhole = (...groups: CountedMatters[]) => totalMoney(groups, []).isWhole;

describe('the sums of what needs a person', () => {
  it('are of all held orders, and of all matters about money, up to a number of each', () => {
    expect(isWhole(groupOf('hold', SUMMED_MAX), groupOf('refund_due', SUMMED_MAX))).toBe(true);
  });

  it('are not whole if more orders are held than are read', () => {
    expect(isWhole(groupOf('hold', SUMMED_MAX + 1))).toBe(false);
    expect(isWhole(groupOf('hold', SUMMED_MAX), groupOf('hold', 1))).toBe(false);
  });

  it('are not whole if more matters about money are open than are read', () => {
    expect(isWhole(groupOf('refund_due', SUMMED_MAX + 1))).toBe(false);
    expect(isWhole(groupOf('refund_due', SUMMED_MAX), groupOf('duplicate_payment', 1))).toBe(false);
  });

  it('are whole however many matters there are that are not about money', () => {
    expect(isWhole(groupOf('event_dead', SUMMED_MAX + 1))).toBe(true);
  });
});
