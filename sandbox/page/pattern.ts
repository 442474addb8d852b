import { createHash } from 'node:crypto';
import { type Html, html } from './html.ts';

const SIDE = 25;
const EYE = 7;

/** A square that reminds of a QR code and holds nothing: no bank's app can read it. */
export function decoration(text: string): Html {
  const bits = Array.from({ length: 3 }, (_, part) =>
    [...createHash('sha256').update(`${text}/${part}`).digest()].map((byte) => byte.toString(2).padStart(8, '0')),
  )
    .flat()
    .join('');
  const squares: string[] = [];
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const isDark = eyeAt(x, y) ?? bits[(y * SIDE + x) % bits.length] === '1';
      if (isDark) squares.push(`M${x} ${y}h1v1h-1z`);
    }
  }
  return html`<svg class="pattern" viewBox="-2 -2 ${SIDE + 4} ${SIDE + 4}" role="img" aria-label="A decorative pattern. It is not a QR code and cannot be scanned."><rect x="-2" y="-2" width="${SIDE + 4}" height="${SIDE + 4}" fill="#fff"/><path d="${squares.join('')}" fill="#1b2430"/></svg>`;
}

/** Whether a square is dark in one of the three corners that a QR code is known by; undefined elsewhere. */
function eyeAt(x: number, y: number): boolean | undefined {
  const [fromLeft, fromTop] = [Math.min(x, SIDE - 1 - x), Math.min(y, SIDE - 1 - y)];
  const isCorner = fromLeft <= EYE && fromTop <= EYE && !(x > SIDE / 2 && y > SIDE / 2);
  if (!isCorner) return undefined;
  if (fromLeft === EYE || fromTop === EYE) return false;
  const ring = Math.max(Math.abs(fromLeft - 3), Math.abs(fromTop - 3));
  return ring !== 2;
}
