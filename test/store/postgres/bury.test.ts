import { expect, it } from 'vitest';
import { LEASE_MS, worldOf } from '../contract/world.ts';
import { holding, untilBehind } from './locks.ts';
import { connectTo, newDatabase, openUntilEnd } from './opening.ts';

it('a link keeps the place of its strongest reason if an event of it is buried while a reading settles', async () => {
  const url = await newDatabase();
  const open = async (replica: string) => {
    return (await openUntilEnd(url, { replica })).store;
  };
  const [settling, burying] = [await open('settling'), await open('burying')];
  const world = worldOf(settling);
  const link = await world.openNew();
  const client = await connectTo(url);
  await client.query('DELETE FROM link_check');
  await world.deliver(link);
  const [event] = await burying.claimEvents({ limit: 10, nowMs: world.nowMs, leaseMs: LEASE_MS });
  if (event === undefined) throw new Error('nothing to bury');
  const number = await world.slot();
  await world.reject(link);
  // Holds up whoever adds the reason of the buried event.
  const holder = await holding(url, 'SET LOCAL session_replication_role = replica');
  await holder.query(
    `INSERT INTO check_reason (link_key, reason, rank, heard_after) VALUES (${link.linkKey}, 'unreadable', 4, 0)`,
  );
  const { eventKey, attempt } = event;
  const fault = { code: 'unreadable_event', message: 'no JSON' };
  const buried = burying.buryEvent({ eventKey, attempt, nowMs: world.nowMs, fault });
  await untilBehind(holder);
  const settled = world.answer(link, [], { reading: { number } });
  await untilBehind(holder, 2);
  await holder.query('ROLLBACK');
  await Promise.all([buried, settled]);
  const { rows: places } = await client.query('SELECT reason FROM link_check');
  const { rows: reasons } = await client.query('SELECT reason FROM check_reason ORDER BY rank DESC');
  expect(places).toEqual([reasons[0]]);
});
