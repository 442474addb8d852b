/** Times in one time zone, by its IANA name: as people read them, and as they type them. */

const formats = new Map<string, { local: Intl.DateTimeFormat; name: Intl.DateTimeFormat }>();

function formatsOf(zone: string) {
  const known = formats.get(zone);
  if (known !== undefined) return known;
  // Swedish writes the year first, as ISO 8601 does.
  const local = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' });
  const made = { local, name: new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'short' }) };
  formats.set(zone, made);
  return made;
}

let ofMachine: string | undefined;

/** The time zone of this machine, found out for the first page: that loads the names of all zones. */
export function machineZone(): string {
  ofMachine ??= Intl.DateTimeFormat().resolvedOptions().timeZone;
  return ofMachine;
}

/** `2026-11-23 05:03:55`. */
export function localTime(zone: string, atMs: number): string {
  return formatsOf(zone).local.format(atMs);
}

/** What the zone calls itself at a time: `GMT-3`, `UTC`. */
export function zoneName(zone: string, atMs: number): string {
  return (
    formatsOf(zone)
      .name.formatToParts(atMs)
      .find(({ type }) => type === 'timeZoneName')?.value ?? zone
  );
}

/** The day of a time: `2026-11-23`. */
export function dayOf(zone: string, atMs: number): string {
  return localTime(zone, atMs).slice(0, '2026-11-23'.length);
}

/** Zones are at most 14 h from UTC. */
const APART_MS_MAX = 15 * 3_600_000;

/**
 * The first moment at or after a local day or minute, like `2026-11-23` or `2026-11-23 08:03`; null if there is none of
 * that name. A day may begin at 01:00, where clocks are put forward at midnight.
 */
export function momentOf(zone: string, text: string): number | null {
  const middle = Date.parse(`${text.replace(' ', 'T')}${text.includes(' ') ? 'Z' : ''}`);
  if (Number.isNaN(middle) || !new Date(middle).toISOString().replace('T', ' ').startsWith(text)) return null;
  let [before, first] = [middle - APART_MS_MAX, middle + APART_MS_MAX];
  while (first - before > 1) {
    const between = Math.floor((before + first) / 2);
    if (localTime(zone, between) >= text) first = between;
    else before = between;
  }
  return first;
}

/** The last millisecond of a local day; null if there is no such day. */
export function endOfDay(zone: string, day: string): number | null {
  const next = Date.parse(day) + 86_400_000;
  const nextMs = Number.isNaN(next) ? null : momentOf(zone, new Date(next).toISOString().slice(0, day.length));
  return nextMs === null || momentOf(zone, day) === null ? null : nextMs - 1;
}
