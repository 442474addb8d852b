import { existsSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, it, onTestFinished } from 'vitest';
import { NO_DETAILS } from '../../../src/domain/payment_details.ts';
import { backUp } from '../../../src/store/sqlite/file.ts';
import { testFolder } from '../../support/app.ts';
import { type Link, said, type World, worldOf } from '../contract/world.ts';
import { openTestStore } from './opening.ts';

const DAY_MS = 86_400_000;
const ORDERS = 80;
/** In every text that is to go, and in no other. */
const MARK = 'zq7marked';

async function openMarked() {
  const path = `${testFolder()}/settled.db`;
  const { store } = await openTestStore(path);
  let isOpen = true;
  const close = async () => {
    if (isOpen) await store.close();
    isOpen = false;
  };
  onTestFinished(close);
  return { path, world: worldOf(store), close };
}

/** Bodies and names of many lengths, so that their rows share pages, overflow, and split and join pages. */
async function fill(world: World): Promise<void> {
  const text = (n: number, kind: string) => `${kind} ${n} ${MARK.repeat(1 + ((n * 37) % 90))}`;
  for (let n = 0; n < ORDERS; n++) {
    const link: Link = await world.newLink();
    await world.store.recordHint(world.hint(link, Buffer.from(text(n, 'hint'))));
    const paymentId = `pay_${n}`;
    const details = {
      ...NO_DETAILS,
      paymentId,
      customerName: text(n, 'Ana'),
      customerEmail: `${text(n, 'at')}@a.example`,
    };
    const { eventKey } = await world.deliver(link, { body: Buffer.from(text(n * 7, 'body')) });
    const claimed = await world.claimOne(eventKey);
    await world.store.settle(world.job(claimed, { facts: [said('completed', { paymentId })], details: [details] }));
  }
}

/** As often as there is something left. */
async function drop({ store, nowMs }: World): Promise<void> {
  const untilMs = nowMs - DAY_MS;
  for (let after: number | null = 0; after !== null; ) {
    after = (await store.dropBodies({ untilMs, nowMs, after, limit: 16 })).next;
  }
  for (let isMore = true; isMore; ) {
    ({ isMore } = await store.dropCustomers({ untilMs, limit: 16, sendsNotices: false }));
  }
}

/** The files in which a text is still to be found. */
function holding(path: string, text = MARK): string[] {
  return ['', '-wal', '-journal', '.copy'].filter(
    (suffix) => existsSync(path + suffix) && readFileSync(path + suffix).includes(text),
  );
}

it('what was dropped is in no byte of the database, its log and a later backup', async () => {
  const { path, world } = await openMarked();
  await fill(world);
  expect(await world.store.eraseDropped()).toEqual({ isErased: true });
  expect(holding(path)).toEqual(['']);
  await fill(world);
  world.tick(DAY_MS);
  await drop(world);
  expect(holding(path)).toEqual(['', '-wal']);
  backUp(path, `${path}.copy`);
  expect(await world.store.eraseDropped()).toEqual({ isErased: true });
  expect(holding(path)).toEqual([]);
});

it('while another connection reads what was there before, it is said to be there, and gone after the next call', async () => {
  const { path, world } = await openMarked();
  await fill(world);
  world.tick(DAY_MS);
  const reader = new Database(path, { readonly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM inbox_body').get();
  await drop(world);
  expect(await world.store.eraseDropped()).toEqual({ isErased: false });
  expect(holding(path)).not.toEqual([]);
  reader.close();
  expect(await world.store.eraseDropped()).toEqual({ isErased: true });
  expect(holding(path)).toEqual([]);
});
