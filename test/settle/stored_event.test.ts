import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deliveryMac } from '../../src/paylink/events.ts';
import { readStoredEvent, readStoredReading } from '../../src/settle/stored_event.ts';
import type { ClaimedEvent } from '../../src/store/verbs/inbox.ts';

const SECRET = 'a signing secret of the tests';
const TIMESTAMP = '1700000000000';

function stored(body: unknown, reading: number | null): ClaimedEvent {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const mac = reading === null ? deliveryMac(SECRET, TIMESTAMP, bytes) : createHash('sha256').update(bytes).digest();
  return {
    eventKey: 3,
    attempt: 1,
    linkKey: 1,
    body: bytes,
    timestamp: reading === null ? TIMESTAMP : '',
    mac,
    receivedAtMs: 0,
    reading,
  };
}

const read = (event: ClaimedEvent) =>
  event.reading === null ? readStoredEvent(event, { secret: SECRET }) : readStoredReading(event, event.reading);
const EVENT = { id: 'evt_1', paymentLinkId: 'pl_1', paymentStatus: 'COMPLETED' };
const READING = {
  paymentLink: {
    id: 'pl_1',
    status: 'INACTIVE',
    shortUrl: 'https://pay.example/s/1',
    expiresAt: '2030-01-01T00:00:00Z',
    payments: [{ id: 'pay_1', status: 'COMPLETED' }],
  },
};

describe('a stored row', () => {
  it('that is an event is read as one, and shows no link', () => {
    const event = read(stored(EVENT, null));
    expect(event).toMatchObject({ linkIds: ['pl_1'], link: null });
    expect(event.facts).toMatchObject([{ kind: 'completed' }]);
  });

  it('that is a reading is read as one, and shows the link', () => {
    const reading = read(stored(READING, 41));
    expect(reading.facts).toMatchObject([{ kind: 'completed', paymentId: 'pay_1' }]);
    expect(reading.link).toEqual({
      id: 'pl_1',
      url: null,
      shortUrl: 'https://pay.example/s/1',
      status: 'INACTIVE',
      expiresAtMs: Date.UTC(2030, 0, 1),
    });
  });

  it.each([
    ['event', stored(EVENT, null), 'Have the service send the event again.'],
    ['reading', stored(READING, 41), 'Have the order checked again.'],
  ])('that is a damaged %s moves no money', (_name, row, advice) => {
    const damaged = Buffer.from(row.body);
    damaged.writeUInt8(damaged.readUInt8(20) ^ 1, 20);
    const mac = Buffer.from(row.mac);
    mac.writeUInt8(mac.readUInt8(31) ^ 1, 31);
    for (const event of [
      { ...row, body: damaged },
      { ...row, mac },
      { ...row, mac: row.mac.subarray(1) },
      { ...row, mac: new Uint8Array() },
    ]) {
      expect(() => read(event)).toThrow(
        expect.objectContaining({
          code: 'stored_event_damaged',
          kind: 'terminal',
          message: expect.stringContaining(advice),
        }),
      );
    }
  });

  it('that is an event is never verified as a reading is, nor a reading as an event', () => {
    const { mac: digest } = stored(EVENT, 41);
    expect(() => read({ ...stored(EVENT, null), mac: digest })).toThrow(/no longer match their signature/);
    const { mac: signature } = stored(READING, null);
    expect(() => read({ ...stored(READING, 41), timestamp: TIMESTAMP, mac: signature })).toThrow(/are not those/);
  });

  it.each([
    ['event', stored('hello', null)],
    ['reading', stored('hello', 41)],
    ['reading of something else', stored({ success: true }, 41)],
  ])('that is an unreadable %s is a fault of its own', (_name, row) => {
    expect(() => read(row)).toThrow(expect.objectContaining({ code: 'unreadable_event', kind: 'terminal' }));
  });
});
