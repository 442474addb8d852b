import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { dayOf, endOfDay, localTime, momentOf } from '../../src/work/zone.ts';
import { startTestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { eventually } from '../support/timing.ts';
import { see as seeAt } from './reading.ts';

const HOUR_MS = 3_600_000;
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());

describe('console: days of a time zone', () => {
  it.each([
    ['UTC', '2026-11-23', '2026-11-23T00:00:00.000Z', 24],
    ['America/Recife', '2026-11-23', '2026-11-23T03:00:00.000Z', 24],
    ['Asia/Kathmandu', '2026-11-23', '2026-11-22T18:15:00.000Z', 24],
    ['Pacific/Kiritimati', '2026-11-23', '2026-11-22T10:00:00.000Z', 24],
    // Clocks are put forward at midnight: the day begins at 01:00.
    ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z', 23],
    ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z', 23],
    ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00.000Z', 25],
    ['UTC', '2024-02-29', '2024-02-29T00:00:00.000Z', 24],
  ])('in %s, %s begins at %s and has %i h', (zone, day, begins, hours) => {
    const end = endOfDay(zone, day) as number;
    expect([iso(momentOf(zone, day)), (end + 1 - Date.parse(begins)) / HOUR_MS]).toEqual([begins, hours]);
  });

  it.each(['2026-02-30', '2026-13-01', '2026-00-10', '2025-02-29'])('knows no day %s', (day) => {
    expect([momentOf('UTC', day), endOfDay('UTC', day), momentOf('UTC', `${day} 08:03`)]).toEqual([null, null, null]);
  });

  /** Moments at which clocks are changed, which chance seldom comes upon: before, in what is twice or not there, after. */
  const CHANGES = [
    ['America/New_York', '2026-03-08T06:59:59.999Z'],
    ['America/New_York', '2026-03-08T07:00:00.000Z'],
    ['America/New_York', '2026-11-01T05:30:00.000Z'],
    ['Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['Pacific/Auckland', '2026-09-26T14:00:00.000Z'],
    ['Pacific/Auckland', '2026-04-04T14:30:00.000Z'],
  ] as const;

  it('have each moment in the day that it is written with, and in no other', () => {
    const zones = fc.constantFrom(
      'UTC',
      'America/Recife',
      'America/New_York',
      'Europe/Berlin',
      'Asia/Kolkata',
      'Pacific/Auckland',
    );
    const moments = fc.integer({ min: Date.UTC(2000), max: Date.UTC(2100) });
    fc.assert(
      fc.property(zones, moments, (zone, atMs) => {
        const day = dayOf(zone, atMs);
        const [first, last] = [momentOf(zone, day) as number, endOfDay(zone, day) as number];
        expect(first <= atMs && atMs <= last).toBe(true);
        expect([
          dayOf(zone, first),
          dayOf(zone, first - 1) < day,
          dayOf(zone, last),
          dayOf(zone, last + 1) > day,
        ]).toEqual([day, true, day, true]);
        const minute = localTime(zone, atMs).slice(0, 16);
        expect(localTime(zone, momentOf(zone, minute) as number).slice(0, 16)).toBe(minute);
      }),
      {
        numRuns: 200 + CHANGES.length,
        examples: CHANGES.map(([zone, at]) => [zone, Date.parse(at)] as [string, number]),
      },
    );
  });
});

it('a payment of the evening stands under its day in cells, filters, CSV and today, in the zone of SETTLED_TIMEZONE', async () => {
  const paidAtMs = Date.parse('2026-11-24T01:30:00.000Z');
  const clock = openClock({ startMs: paidAtMs, scale: 1 });
  const app = await startTestApp({ clock, environment: { SETTLED_TIMEZONE: 'America/Recife' } });
  const link = await app.reserve('evening-1');
  const body = paymentEvent({ linkId: 'pl_1' });
  await app.deliver(link, body, signedHeaders(link.webhookSecret, body, String(paidAtMs)));
  await eventually(async () => expect((await app.order('evening-1')).state).toBe('paid'));
  const see = async (path: string) => {
    const { text, markup } = await seeAt(app, path);
    const csv = /href="(\/v1\/orders\.csv[^"]*)"/.exec(markup)?.[1]?.replaceAll('&amp;', '&');
    return { text, csv, markup };
  };
  for (const [query, isIn] of [
    ['paidSince=2026-11-23&paidUntil=2026-11-23', true],
    ['paidSince=23/11/2026&paidUntil=23.11.2026', true],
    ['since=2026-11-23&until=2026-11-23', true],
    ['paidSince=2026-11-24', false],
    ['paidUntil=2026-11-22', false],
    ['until=2026-11-22', false],
    ['paidSince=2026-11-23T22:29', true],
    ['paidSince=2026-11-23T22:31', false],
  ] as const) {
    const { text, csv } = await see(`/orders?${query}`);
    expect([query, text.includes('evening-1')]).toEqual([query, isIn]);
    if (!isIn) continue;
    expect(text).toContain('2026-11-23 22:30:0');
    expect((await see(String(csv))).markup).toContain('evening-1');
  }
  for (const [list, query, isIn] of [
    ['deliveries', 'since=2026-11-23&until=2026-11-23', true],
    ['deliveries', 'since=2026-11-24', false],
    ['deliveries', 'until=2026-11-22', false],
  ] as const) {
    expect([list, query, (await see(`/${list}?${query}`)).text.includes('evening-1')]).toEqual([list, query, isIn]);
  }
  const first = await see('/');
  expect(first.text).toMatch(/As of 22:\d\d:\d\d GMT-3/);
  expect(first.markup).toMatch(/href="\/orders\?paidSince=2026-11-23">1</);
  clock.advance(3 * HOUR_MS);
  expect((await see('/')).markup).toMatch(/href="\/orders\?paidSince=2026-11-24">0</);
});
