/** Random choices that follow from a seed. */
export type Chance = {
  /** A whole number from 0 to `below` - 1. */
  below(below: number): number;
  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number;
  /** True in one of `many` cases. */
  oneIn(many: number): boolean;
  pick<T>(things: readonly T[]): T;
};

/** Pseudo-random choices (mulberry32). Each `part` of a seed gives others. */
export function chanceOf(seed: number, part = 0): Chance {
  let state = Math.imul(seed ^ Math.imul(part + 1, 0x9e3779b1), 0x85ebca6b) >>> 0;
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    between: (least, most) => least + below(most - least + 1),
    oneIn: (many) => below(many) === 0,
    pick: (things) => things[below(things.length)] as (typeof things)[number],
  };
}
