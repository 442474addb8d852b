/** A cursor hides the place that it names, so that callers do not count on what it is. */
export function writeCursor(place: string): string {
  return Buffer.from(place).toString('base64url');
}

/** The place that a cursor names; null where it is none. */
export function openCursor(cursor: string): string | null {
  const place = Buffer.from(cursor, 'base64url').toString();
  // Decoding skips what is not base64url; a cursor has one spelling only.
  return writeCursor(place) === cursor ? place : null;
}

/** The number of a row as it is written in ids and cursors; null where it is none. */
export function readKey(text: string): number | null {
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : null;
}
