import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { replaceSecretsKeyFile } from '../../src/store/files.ts';
import { openKeyring } from '../../src/store/keyring.ts';
import { testFolder } from '../support/app.ts';
import { peek } from '../support/peek.ts';
import { completedEvent, deliver, type Reserved, type Serving, startServing } from './serving.ts';

const PRELOAD = new URL('../../prove/kill_point.ts', import.meta.url).href;
const RESEAL = 'UPDATE link SET sealed_secret = @sealed, secrets_key_id = @keyId';
/** More than are sealed anew together. */
const LINKS = 70;

function keyringOf(storePath: string) {
  const key = Buffer.from(readFileSync(`${storePath}.key`, 'utf8'), 'base64');
  return { key, keyId: openKeyring(key).keyId };
}

function linksUnder(storePath: string, keyId: string): number {
  return peek(storePath, 'SELECT count(*) AS n FROM link WHERE secrets_key_id = ?', keyId)[0].n;
}

async function reserveAll(serving: Serving): Promise<Reserved[]> {
  return Promise.all(Array.from({ length: LINKS }, (_, n) => serving.reserve(`order-${n}`)));
}

async function kill({ child, finished }: Serving): Promise<void> {
  child.kill('SIGKILL');
  await finished;
}

/** Starts it again without being asked for anything: what was begun is ended, and every delivery is taken. */
async function expectHealed(storePath: string, links: readonly Reserved[]): Promise<void> {
  const serving = await startServing(storePath);
  const { keyId } = keyringOf(storePath);
  await vi.waitFor(
    () => {
      expect(peek(storePath, 'SELECT secrets_key_id AS id FROM instance')).toEqual([{ id: keyId }]);
    },
    { timeout: 10_000 },
  );
  expect(linksUnder(storePath, keyId)).toBe(LINKS);
  for (const link of [links[0], links.at(-1)] as Reserved[]) {
    expect((await deliver(serving, link, completedEvent(link))).status).toBe(200);
  }
  await kill(serving);
}

describe('a change of the secrets key that is cut off', () => {
  it.each([
    ['before any secret is sealed anew', `before:1:${RESEAL}`, [0, 0]],
    ['between two batches of secrets', `after:40:${RESEAL}`, [40, LINKS - 1]],
    ['after the last secret', 'before:1:UPDATE instance SET secrets_key_id', [LINKS, LINKS]],
  ] as const)(
    'is ended by the next start: %s',
    async (_when, killPoint, [resealedMin, resealedMax]) => {
      const storePath = join(testFolder(), 'settled.db');
      const environment = { NODE_OPTIONS: `--import ${PRELOAD}`, KILL_POINT: killPoint };
      const serving = await startServing(storePath, environment);
      const links = await reserveAll(serving);
      const before = keyringOf(storePath);
      const asked = serving.api('/v1/admin/rotate-key', {}).catch((error: Error) => error);
      expect(await serving.finished).toMatchObject({ signal: 'SIGKILL' });
      expect(await asked).toBeInstanceOf(Error);
      const after = keyringOf(storePath);
      expect(after.keyId).not.toBe(before.keyId);
      const resealed = linksUnder(storePath, after.keyId);
      expect(resealed + linksUnder(storePath, before.keyId)).toBe(LINKS);
      expect(resealed).toBeGreaterThanOrEqual(resealedMin);
      expect(resealed).toBeLessThanOrEqual(resealedMax);
      await expectHealed(storePath, links);
    },
    30_000,
  );

  it('is ended by the next start: once the new key is in its file', async () => {
    const storePath = join(testFolder(), 'settled.db');
    const serving = await startServing(storePath);
    const links = await reserveAll(serving);
    await kill(serving);
    replaceSecretsKeyFile(storePath, keyringOf(storePath));
    await expectHealed(storePath, links);
  }, 60_000);
});
