import { randomBytes } from 'node:crypto';

/** What the shop sells. The service takes amounts above 25 only (spec section 8). */
export const GOODS = [
  { id: 'tea', title: 'Tea for a month', about: 'Twelve kinds, a spoon, and no hurry.', amount: '48.00' },
  { id: 'lamp', title: 'A lamp for the desk', about: 'Warm light, brass, one switch.', amount: '149.90' },
  { id: 'chair', title: 'A chair that lasts', about: 'Oak. Your grandchildren will sit on it.', amount: '820.00' },
] as const;

export type Good = (typeof GOODS)[number];

/** A new order's name: it is made before the button is pressed, so that pressing it twice is one order. */
export function newReference(id: string): string {
  return `${id}-${randomBytes(3).toString('hex')}`;
}
