import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/work/clock.ts';
import type { ReservedLink } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { peek } from '../support/rows.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventsOf, expectSaid, SAID } from './answers.ts';

const NOON_MS = Date.UTC(2026, 0, 15, 12);
let nowMs = NOON_MS;
const app = sharedApp({ clock: { ...systemClock, nowMs: () => nowMs } });

async function reserved(): Promise<ReservedLink> {
  nowMs = NOON_MS;
  return app().reserve(freshReference());
}

const signedAt = (link: ReservedLink, body: string, atMs: number) =>
  signedHeaders(link.webhookSecret, body, String(atMs));

function hintsOf(link: ReservedLink) {
  return peek(
    app().storePath,
    `SELECT h.event_id, h.body, h.timestamp, h.count FROM hint h JOIN link l ON l.key = h.link_key WHERE l.token = ? ORDER BY h.key`,
    link.webhookUrl.split('/').at(-1),
  );
}

describe('receive: freshness', () => {
  it.each([
    ['of this very moment', 0],
    ['300 s old', -300_000],
    ['300 s ahead', 300_000],
  ])('lets a delivery pass that is %s', async (_name, offsetMs) => {
    const link = await reserved();
    const body = paymentEvent();
    await expectSaid(await app().deliver(link, body, signedAt(link, body, NOON_MS + offsetMs)), SAID.recorded);
    expect(hintsOf(link)).toEqual([]);
  });

  it.each([
    ['300.001 s old', -300_001],
    ['300.001 s ahead', 300_001],
    ['18 hours old, as the last retry may be', -18 * 3_600_000],
    ['a year ahead', 365 * 86_400_000],
  ])('refuses a delivery that is %s, and keeps it as a hint', async (_name, offsetMs) => {
    const link = await reserved();
    const body = paymentEvent({ id: 'evt_stale' });
    const timestamp = String(NOON_MS + offsetMs);
    await expectSaid(await app().deliver(link, body, signedHeaders(link.webhookSecret, body, timestamp)), SAID.stale);
    expect(hintsOf(link)).toEqual([{ event_id: 'evt_stale', body: Buffer.from(body), timestamp, count: 1 }]);
    expect(await eventsOf(app(), link.reference)).toEqual([]);
    expect((await app().order(link.reference)).state).toBe('awaiting_payment');
  });

  it('refuses a replay as stale once the window has passed', async () => {
    const link = await reserved();
    const body = paymentEvent();
    const headers = signedAt(link, body, NOON_MS);
    await expectSaid(await app().deliver(link, body, headers), SAID.recorded);
    nowMs = NOON_MS + 299_000;
    await expectSaid(await app().deliver(link, body, headers), SAID.duplicate);
    nowMs = NOON_MS + 301_000;
    await expectSaid(await app().deliver(link, body, headers), SAID.stale);
    expect(await eventsOf(app(), link.reference)).toHaveLength(1);
  });

  it('is not revealed to a sender that cannot sign', async () => {
    const link = await reserved();
    const body = paymentEvent();
    const headers = signedHeaders('another-secret-of-24-bytes', body, String(NOON_MS - 301_000));
    await expectSaid(await app().deliver(link, body, headers), SAID.unauthorized);
    expect(hintsOf(link)).toEqual([]);
  });

  it('is taken when the headers arrive: a slow body does not make a delivery stale', async () => {
    const link = await reserved();
    const body = paymentEvent();
    const lines = Object.entries({
      Host: 'localhost',
      'Content-Length': String(body.length),
      Expect: '100-continue',
      ...signedAt(link, body, NOON_MS),
    }).map(([name, value]) => `${name}: ${value}`);
    const connection = await rawConnection(app().hooksUrl);
    connection.send(`POST ${new URL(link.webhookUrl).pathname} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    // The server asks for the body in the turn in which it takes the headers.
    await connection.continued();
    nowMs = NOON_MS + 600_000;
    connection.send(body);
    const { status, body: said } = await connection.answer();
    expect([status, JSON.parse(said)]).toEqual([200, SAID.recorded.body]);
  });
});

describe('receive: the tolerance', () => {
  const strict = sharedApp({
    clock: { ...systemClock, nowMs: () => NOON_MS },
    environment: { SETTLED_TOLERANCE_SECONDS: '1' },
  });

  it.each([
    [-1000, SAID.recorded],
    [-1001, SAID.stale],
    [1000, SAID.recorded],
    [1001, SAID.stale],
  ])('is configured: 1 s and %i ms', async (offsetMs, said) => {
    const link = await strict().reserve(freshReference());
    const body = paymentEvent();
    await expectSaid(await strict().deliver(link, body, signedAt(link, body, NOON_MS + offsetMs)), said);
  });
});
