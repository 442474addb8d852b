import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { secretsKeyFile } from '../../../src/secrets/key_files.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openForWriting } from '../../../src/store/sqlite/open.ts';
import { sealedSecret, sha256 } from '../contract/world.ts';
import { openTestStore } from './opening.ts';

/** What tests do in a process of its own, or as another user: `child.ts DEED PATH`. Prints one line of JSON. */
const [deed = '', path = ''] = process.argv.slice(2);

const DEEDS: Record<string, () => unknown> = {
  open: () => ({ created: open().created }),
  hold: () => {
    const opened = open();
    // What has no reference is closed when memory is collected, and gives up its lock.
    setInterval(() => opened.lock, 60_000);
    return { created: opened.created };
  },
  keys: makeKeys,
  fill: fillDisk,
};

try {
  console.log(JSON.stringify(await DEEDS[deed]?.()));
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  console.log(JSON.stringify({ code, message }));
}

function open() {
  return openForWriting({ path, secretsKeyId: 'key-1', newInstanceId: 'instance-2', nowMs: 1 });
}

/** Makes the keys of many stores as soon as the test says go. */
function makeKeys(): string[] {
  writeFileSync(`${path}.ready.${process.pid}`, '');
  while (!existsSync(`${path}.go`));
  return Array.from({ length: 20 }, (_, n) => secretsKeyFile(`${path}.${n}`).toString('hex'));
}

/** Fills the disk under the store, frees some of it, and tells what became of the deliveries. */
async function fillDisk() {
  const ballast = `${path}.ballast`;
  writeFileSync(ballast, Buffer.alloc(1_500_000));
  const { store } = await openTestStore(path);
  const linkKey = await newLink(store);
  const acknowledged: number[] = [];
  let fault: NodeJS.ErrnoException | null = null;
  while (fault === null && acknowledged.length < 1000) {
    try {
      acknowledged.push(await record(store, linkKey));
    } catch (error) {
      fault = error as NodeJS.ErrnoException;
    }
  }
  const backup = await store.backup({ path: `${path}.backup` }).then(
    () => null,
    (error) => error.code,
  );
  const files = readdirSync(dirname(path)).filter((name) => /backup|ballast/.test(name));
  const { rows: events } = await store.listEvents({ limit: 1000 });
  rmSync(ballast);
  acknowledged.push(await record(store, linkKey));
  await store.close();
  const reopened = await openTestStore(path);
  const { rows: kept } = await reopened.store.listEvents({ limit: 1000 });
  await reopened.store.close();
  return {
    code: fault?.code,
    backup,
    files,
    whileFull: events.map(({ key }) => key).reverse(),
    acknowledged,
    kept: kept.map(({ key }) => key).reverse(),
  };
}

async function newLink(store: Store): Promise<number> {
  const token = 'the token';
  const freshSecret = sealedSecret('secret');
  const amount = { amountMinor: 100, currency: 'BRL' };
  const rest = { linkId: null, secret: null, mayCorrect: true, atMs: 1 };
  await store.registerLink({ by: null, reference: 'order-1', amount, token, freshSecret, ...rest });
  return (await store.findCredentials({ token }))?.linkKey ?? 0;
}

async function record(store: Store, linkKey: number): Promise<number> {
  const body = randomBytes(100_000);
  const bodySha256 = sha256(body);
  const mac = bodySha256;
  const rest = { timestamp: '1', type: null, readable: true, isPaymentId: false, receivedAtMs: 1 };
  const eventId = bodySha256.toString('hex');
  return (await store.recordDelivery({ linkKey, eventId, body, bodySha256, mac, ...rest })).eventKey;
}
