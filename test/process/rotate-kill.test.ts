import { readdirSync, readFileSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deliver, eventOf, type Reserved } from '../../prove/harness/send.ts';
import { dyingAt } from '../../prove/harness/settled.ts';
import { openKeyring } from '../../src/secrets/keyring.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { peek } from '../support/rows.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { startServing } from './serving.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const RESEAL = 'UPDATE link SET sealed_secret = +?, secrets_key_id = +?';
/** More than are sealed anew together. */
const LINKS = 70;

function keyringOf(storePath: string) {
  const key = Buffer.from(readFileSync(`${storePath}.key`, 'utf8'), 'base64');
  return { key, keyId: openKeyring(key).keyId };
}

function linksUnder(storePath: string, keyId: string): number {
  return peek(storePath, 'SELECT count(*) AS n FROM link WHERE secrets_key_id = ?', keyId)[0].n;
}

/** A store whose process was killed at this point of a change of the key, and the key from before. */
async function cutOff(killPoint: string) {
  const storePath = join(testFolder(), 'settled.db');
  const serving = await startServing(storePath, dyingAt(killPoint));
  const links = await Promise.all(Array.from({ length: LINKS }, (_, n) => serving.reserve(`order-${n}`)));
  const before = keyringOf(storePath);
  const asked = serving.api('/v1/admin/rotate-key', {}).catch((error: Error) => error);
  expect(await serving.finished).toMatchObject({ signal: 'SIGKILL' });
  expect(await asked).toBeInstanceOf(Error);
  return { storePath, links, before };
}

/** Starts it again without being asked for anything: what was begun is ended, and every delivery is taken. */
async function expectHealed(
  storePath: string,
  links: readonly Reserved[],
  { keyId = keyringOf(storePath).keyId, environment = {} } = {},
): Promise<void> {
  const { app } = await startTestApp({ engine: 'sqlite', storePath, environment });
  await eventually(() => {
    const columns = 'secrets_key_id AS id, secrets_key_others AS others';
    expect(peek(storePath, `SELECT ${columns} FROM instance`)).toEqual([{ id: keyId, others: '' }]);
  });
  expect(linksUnder(storePath, keyId)).toBe(LINKS);
  for (const link of [links[0], links.at(-1)] as Reserved[]) {
    expect((await deliver({ hooksPort: app.hooksAddress.port }, link, eventOf(link))).status).toBe(200);
  }
}

/** Starts it in this process, which must fail; returns what it says. */
async function refusal(storePath: string, environment: Record<string, string> = {}): Promise<string> {
  const error = await startTestApp({ storePath, environment }).catch((one: Error) => one);
  expect(error).toMatchObject({ code: 'secrets_key_wrong' });
  return (error as Error).message;
}

describe('a change of the secrets key that is cut off', () => {
  it.each([
    ['once the new key is in its file', 'before:1:UPDATE instance SET secrets_key_others', [0, 0]],
    ['before any secret is sealed anew', `before:1:${RESEAL}`, [0, 0]],
    ['between two batches of secrets', `after:40:${RESEAL}`, [40, LINKS - 1]],
    ['after the last secret', 'before:1:UPDATE instance SET secrets_key_id', [LINKS, LINKS]],
  ] as const)('is ended by the next start: %s', async (_when, killPoint, [resealedMin, resealedMax]) => {
    const { storePath, links, before } = await cutOff(killPoint);
    const after = keyringOf(storePath);
    expect(after.keyId).not.toBe(before.keyId);
    const resealed = linksUnder(storePath, after.keyId);
    expect(resealed + linksUnder(storePath, before.keyId)).toBe(LINKS);
    expect(resealed).toBeGreaterThanOrEqual(resealedMin);
    expect(resealed).toBeLessThanOrEqual(resealedMax);
    await expectHealed(storePath, links);
  });

  it('is not taken back by a start that lacks the new key, or the one before', async () => {
    const { storePath, links } = await cutOff(`after:40:${RESEAL}`);
    const [file, aside] = [`${storePath}.key`, `${storePath}.aside`];
    const after = keyringOf(storePath);
    const [older = ''] = readdirSync(dirname(file)).filter((name) => name.startsWith('settled.db.key.'));
    const before = { file: join(dirname(file), older), keyId: older.slice('settled.db.key.'.length) };
    const both = `are encrypted under the keys ${before.keyId} and ${after.keyId}`;

    renameSync(before.file, aside);
    expect(await refusal(storePath)).toContain(
      `${both}, and all of them are needed until that has ended. Missing: ${before.keyId}.`,
    );
    renameSync(file, `${aside}.new`);
    renameSync(aside, file);
    expect(await refusal(storePath)).toContain(`Missing: ${after.keyId}.`);
    const [old, fresh] = [file, `${aside}.new`].map((path) => readFileSync(path, 'utf8').trim()) as [string, string];
    expect(await refusal(storePath, { SETTLED_SECRETS_KEY: old })).toContain(both);

    // Nothing was changed by being refused; with both it goes either way.
    const environment = { SETTLED_SECRETS_KEY: old, SETTLED_SECRETS_KEY_PREVIOUS: fresh };
    await expectHealed(storePath, links, { keyId: before.keyId, environment });
  });
});
