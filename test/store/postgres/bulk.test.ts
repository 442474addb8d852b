import { expect, it } from 'vitest';
import { FAULT, LEASE_MS, worldOf } from '../contract/world.ts';
import { holding, untilBehind } from './locks.ts';
import { newDatabase, openUntilEnd } from './opening.ts';

const AUDIT_KEY = Buffer.alloc(32, 7);
const ANA = { name: 'ana', role: 'operator', origin: 'console', address: '127.0.0.1', auditKey: AUDIT_KEY } as const;

it('no row changes after the cancel of a bulk run was answered', async () => {
  const url = await newDatabase();
  const open = async (replica: string) => {
    return (await openUntilEnd(url, { replica })).store;
  };
  const [working, cancelling] = [await open('working'), await open('cancelling')];
  const world = worldOf(working);
  const claimed = await world.claimNew(await world.newLink());
  await working.buryEvent({ ...claimed, nowMs: world.nowMs, fault: FAULT });
  const asked = { action: 'replay_events', reason: 'seen', by: ANA, atMs: world.tick() } as const;
  const filter = '{"status":"dead"}';
  const { key } = await working.startBulk({ ...asked, filter, keys: [claimed.eventKey], isMore: false });
  const run = await working.claimBulk({ limit: 10, nowMs: world.nowMs, leaseMs: LEASE_MS });
  if (run === null) throw new Error('nothing to do');
  const holder = await holding(url, 'SELECT 1 FROM inbox FOR UPDATE');
  const [itemKey] = run.items as [number];
  const carriedOut = working.carryOutBulk({ run, itemKey, auditKey: AUDIT_KEY, nowMs: world.nowMs });
  await untilBehind(holder);
  const cancelled = cancelling.cancelBulk({ key, by: ANA, atMs: world.tick() });
  await Promise.race([untilBehind(holder, 2), cancelled]);
  await holder.query('ROLLBACK');
  expect(await carriedOut).toMatchObject({ outcome: 'changed' });
  // It was the last row: the run had ended before the cancel could.
  expect(await cancelled).toBe('ended');
});
