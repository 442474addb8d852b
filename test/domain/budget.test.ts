import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REQUEST_CLASSES, slotsFor } from '../../src/domain/budget.ts';

const caps = (slots: number) => Object.fromEntries(REQUEST_CLASSES.map((one) => [one, slotsFor(one, slots)]));

describe('budget: the cap of a class', () => {
  it('is that of the design where all have 50 slots', () => {
    expect(caps(50)).toEqual({ create: 50, confirm: 40, hint: 30, janitor: 20 });
  });

  it('rounds down where a share is no whole number', () => {
    expect(caps(7)).toEqual({ create: 7, confirm: 5, hint: 4, janitor: 2 });
  });

  it('leaves the next stronger class slots of its own, down to the fewest slots and up to the most', () => {
    const slotCounts = Array.from({ length: 51 }, (_, index) => index + 5);
    for (const slots of slotCounts) {
      const { create, confirm, hint, janitor } = caps(slots) as Record<string, number>;
      expect([slots, create]).toEqual([slots, slots]);
      expect(confirm).toBeLessThan(create as number);
      expect(hint).toBeLessThan(confirm as number);
      expect(janitor).toBeLessThan(hint as number);
      expect(janitor).toBeGreaterThanOrEqual(1);
    }
  });

  it('is a whole number of at least one, and never more than all slots', () => {
    fc.assert(
      fc.property(fc.constantFrom(...REQUEST_CLASSES), fc.integer({ min: 1, max: 60 }), (one, slots) => {
        const cap = slotsFor(one, slots);
        expect(Number.isInteger(cap)).toBe(true);
        expect(cap).toBeGreaterThanOrEqual(1);
        expect(cap).toBeLessThanOrEqual(slots);
      }),
    );
  });
});
