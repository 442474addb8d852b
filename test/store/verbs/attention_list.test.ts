import { describe, expect, it } from 'vitest';
import type { MatterKind } from '../../../src/domain/matter.ts';
import { type GroupRow, SUMMED_MAX, totalMoney } from '../../../src/store/verbs/attention_list.ts';

function groupOf(kind: MatterKind, count: number): GroupRow {
  return { kind, reason: kind === 'hold' ? 'amount_mismatch' : null, count, oldestAtMs: 1 };
}

const isWhole = (...groups: GroupRow[]) => totalMoney(groups, []).isWhole;

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
