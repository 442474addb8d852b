import { expect, it } from 'vitest';
import { worldOf } from '../contract/world.ts';
import { untilBehind } from './locks.ts';
import { connectTo, newDatabase, openUntilEnd } from './opening.ts';

it.each([true, false])(
  'records an event id once, and other content that comes meanwhile as a conflict: readable %s',
  async (readable) => {
    const url = await newDatabase();
    const { store } = await openUntilEnd(url);
    const client = await connectTo(url);
    const world = worldOf(store);
    const link = await world.newLink();
    const first = world.delivery(link, { eventId: 'evt_1', body: Buffer.from('one') });
    // Another replica is about to commit the first content.
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, received_at_ms, due_at_ms)
       VALUES ($1, $2, $3, '', '', 1, 1)`,
      [first.linkKey, first.eventId, first.bodySha256],
    );
    const content = world.delivery(link, { eventId: 'evt_1', body: Buffer.from('two'), readable });
    const recording = store.recordDelivery(content);
    await untilBehind(client);
    await client.query('COMMIT');
    expect(await recording).toMatchObject({ outcome: 'conflict' });
    expect(await store.recordDelivery(content)).toMatchObject({ outcome: 'duplicate' });
    const { events } = await world.timeline(link);
    expect(events.map(({ conflict, duplicates }) => [conflict, duplicates])).toEqual([
      [false, 0],
      [true, 1],
    ]);
  },
);
