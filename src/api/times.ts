/** Times as the API has them: ISO 8601 in UTC. */

export function iso(ms: number): string {
  return new Date(ms).toISOString();
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : iso(ms);
}

/** Epoch milliseconds of a time that was given; null where none was. */
export function givenMs(time: string | undefined): number | null {
  return time === undefined ? null : Date.parse(time);
}
