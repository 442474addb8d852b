import { describe, expect, it } from 'vitest';
import { runIn } from '../store/postgres/contract_store.ts';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';

/** Only a settlement that never comes takes this long; latency.test.ts measures how long one takes. */

describe('an event that cannot be settled', () => {
  it('waits for a person and holds up none of the others', async () => {
    const settled = await startTestApp();
    const links = await Promise.all(Array.from({ length: 100 }, (_, n) => settled.reserve(`order-${n}`)));
    const answers = await Promise.all(
      links.flatMap((link, n) => [
        settled.deliver(link, poison(n)),
        settled.deliver(link, completed(link)),
        settled.deliver(link, namingAnotherLink(link)),
      ]),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 202]));
    await eventually(async () => {
      const { orders, events } = (await settled.api('/v1/stats')).body.stats;
      expect(orders).toMatchObject({ paid: 100, awaiting_payment: 0, held: 0 });
      expect(events).toEqual({ pending: 0, leased: 0, dead: 200, done: 100 });
    });
    const { events } = (await settled.api('/v1/events?status=dead&limit=200')).body;
    const faults = events.map(({ fault }: { fault: { code: string } }) => fault.code).sort();
    expect(faults).toEqual([...Array(100).fill('link_mismatch'), ...Array(100).fill('unreadable_event')]);
  });

  it('is dead again after a replay that changes nothing about it', async () => {
    const settled = await startTestApp();
    const link = await settled.reserve('order-1');
    await settled.deliver(link, poison(1));
    const event = await theDeadEvent(settled);
    const before = (await settled.api(`/v1/events/${event}`)).body.event;
    const matter = { kind: 'event_not_understood' };
    expect((await settled.api('/v1/attention')).body.attention).toMatchObject([matter]);
    expect(await replay(settled, event)).toMatchObject({
      status: 202,
      body: { event: { id: event, status: 'pending' } },
    });
    expect(await theDeadEvent(settled)).toBe(event);
    const after = (await settled.api(`/v1/events/${event}`)).body.event;
    expect(after).toEqual({ ...before, attempt: 1, endedAt: expect.any(String) });
    expect((await settled.api('/v1/attention')).body.attention).toMatchObject([matter]);
    expect(after.endedAt > before.endedAt).toBe(true);
    expect((await settled.order('order-1')).state).toBe('awaiting_payment');
  });

  it('is settled by a replay once its cause is gone, and once only', async () => {
    const settled = await startTestApp();
    const { link, repair } = await damagedEvent(settled);
    const event = await theDeadEvent(settled);
    expect((await settled.order(link.reference)).state).toBe('awaiting_payment');
    await repair();
    expect((await replay(settled, event)).status).toBe(202);
    const order = await paidOrder(settled, link);
    expect(order.payments).toHaveLength(1);
    expect((await settled.api('/v1/attention')).body.attention).toEqual([]);

    expect((await replay(settled, event)).status).toBe(202);
    await eventually(async () => {
      const { events } = (await settled.api('/v1/stats')).body.stats;
      expect(events).toMatchObject({ pending: 0, leased: 0, dead: 0 });
    });
    expect(await settled.order(link.reference)).toEqual(order);
  });

  it('whose stored bytes were damaged is settled when the service sends it again', async () => {
    const settled = await startTestApp();
    const { link, repairDisk } = await damagedEvent(settled);
    await theDeadEvent(settled);
    await repairDisk();
    const again = await settled.deliver(link, completed(link));
    expect([again.status, await again.json()]).toEqual([200, { received: true, duplicate: true }]);
    expect((await paidOrder(settled, link)).payments).toHaveLength(1);
    expect((await settled.api('/v1/attention')).body.attention).toEqual([]);
  });
});

/** Authentic, but not JSON. */
function poison(n: number): string {
  return `{"id":"evt_poison_${n}",`;
}

function completed({ reference }: ReservedLink): string {
  return paymentEvent({ id: `evt_${reference}`, linkId: `pl_${reference}`, amount: '100.00' });
}

function namingAnotherLink({ reference }: ReservedLink): string {
  return JSON.stringify({
    id: `evt_${reference}_other`,
    type: 'payment_link.created',
    data: { paymentLinkId: 'pl_a', linkId: 'pl_b' },
  });
}

/** A COMPLETED event that the disk damages between its acknowledgement and its settlement. */
async function damagedEvent(
  settled: TestApp,
): Promise<{ link: ReservedLink; repair: () => Promise<void>; repairDisk: () => Promise<void> }> {
  const link = await settled.reserve('order-1');
  await change(settled, DAMAGE);
  expect((await settled.deliver(link, completed(link))).status).toBe(200);
  const repairDisk = () =>
    change(settled, { sqlite: 'DROP TRIGGER damage', postgres: 'DROP TRIGGER damage ON inbox_body' });
  const repair = async () => {
    await repairDisk();
    const body = Buffer.from(completed(link)).toString('hex');
    await change(settled, {
      sqlite: `UPDATE inbox_body SET body = x'${body}'`,
      postgres: `UPDATE inbox_body SET body = '\\x${body}'`,
    });
  };
  return { link, repair, repairDisk };
}

/** A disk that writes another id than it is given. */
const DAMAGE = {
  sqlite: `CREATE TRIGGER damage AFTER INSERT ON inbox_body
    BEGIN
      UPDATE inbox_body SET body = CAST(replace(CAST(body AS TEXT), 'pay_1', 'pay_2') AS BLOB)
      WHERE inbox_key = new.inbox_key;
    END`,
  postgres: `CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.body := convert_to(replace(convert_from(NEW.body, 'UTF8'), 'pay_1', 'pay_2'), 'UTF8');
      RETURN NEW;
    END $$;
    CREATE TRIGGER damage BEFORE INSERT ON inbox_body FOR EACH ROW EXECUTE FUNCTION damage()`,
};

/** Changes the store as damage does. */
async function change(
  { storePath, database }: TestApp,
  { sqlite, postgres }: { sqlite: string; postgres: string },
): Promise<void> {
  if (database === null) tamper(storePath, sqlite);
  else await runIn(database.url, postgres);
}

async function theDeadEvent(settled: TestApp): Promise<string> {
  return eventually(async () => {
    const { events } = (await settled.api('/v1/events?status=dead')).body;
    expect(events).toHaveLength(1);
    return events[0].id;
  });
}

function replay(settled: TestApp, event: string): ReturnType<TestApp['api']> {
  return settled.api(`/v1/events/${event}/replay`, { method: 'POST' });
}

async function paidOrder(settled: TestApp, { reference }: ReservedLink): Promise<Record<string, unknown>> {
  return eventually(async () => {
    const order = await settled.order(reference);
    expect(order.state).toBe('paid');
    return order;
  });
}
