import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foreignUse, REQUEST_CLASSES, slotsFor, slotsLeft } from '../../src/domain/budget.ts';

const caps = (slots: number) => Object.fromEntries(REQUEST_CLASSES.map((one) => [one, slotsFor(one, slots)]));

describe('budget: the cap of a class', () => {
  it('is that of the design for 50 slots', () => {
    expect(caps(50)).toEqual({ create: 50, confirm: 40, hint: 30, janitor: 20 });
  });

  it('rounds down if a share is not a whole number', () => {
    expect(caps(7)).toEqual({ create: 7, confirm: 5, hint: 4, janitor: 2 });
  });

  it('leaves separate slots to the next stronger class, down to the fewest slots and up to the most', () => {
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

describe('budget: what is left for a class', () => {
  const left = (one: 'create' | 'confirm' | 'hint' | 'janitor', own: number, ofClass: number, foreign = 0) =>
    slotsLeft(one, 50, { own, ofClass, foreign });

  it('is its cap less what is in use, or its floor less its own', () => {
    expect(left('janitor', 0, 0)).toBe(20);
    expect(left('janitor', 19, 0)).toBe(5);
    expect(left('janitor', 30, 2)).toBe(3);
    expect(left('janitor', 30, 5)).toBe(0);
    expect(left('hint', 45, 0)).toBe(5);
    expect(left('confirm', 45, 0)).toBe(5);
    expect(left('confirm', 42, 10)).toBe(0);
    expect(left('create', 45, 45)).toBe(5);
  });

  it('counts what others use as ours', () => {
    expect(left('create', 10, 10, 40)).toBe(0);
    expect(left('janitor', 10, 0, 30)).toBe(5);
  });

  it('never lets more than all slots be in use', () => {
    const used = fc.integer({ min: 0, max: 70 });
    fc.assert(
      fc.property(fc.constantFrom(...REQUEST_CLASSES), used, used, used, (one, own, ofClass, foreign) => {
        const slots = slotsLeft(one, 55, { own, ofClass: Math.min(own, ofClass), foreign });
        expect(slots).toBeGreaterThanOrEqual(0);
        if (slots > 0) expect(own + foreign + slots).toBeLessThanOrEqual(55);
      }),
    );
  });

  it.each([
    [{ limit: 60, remaining: 40 }, 20, 0],
    [{ limit: 60, remaining: 40 }, 5, 15],
    [{ limit: 60, remaining: 0 }, 0, 60],
    [{ limit: 600, remaining: 500 }, 1, 0],
    [{ limit: 30, remaining: 10 }, 20, 30],
  ])('knows from %j beside %i of ours that others use %i', (seen, own, others) => {
    expect(foreignUse(seen, own)).toBe(others);
  });
});
