import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { AuditHead } from '../../../src/domain/access.ts';
import type { Author } from '../../../src/store/verbs/audit.ts';
import { said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;
const KEY = Buffer.alloc(32, 7);
const NONE: AuditHead = { number: 0, mac: new Uint8Array() };

/** Tokens, sessions and sign-in links, and the chain of what people did. */
export function accessContract(worlds: Worlds): void {
  let world: World;
  let by: Author;
  let bootstrapSha256: Uint8Array;
  beforeEach(() => {
    world = worlds.shared();
    by = { name: 'ana', role: 'admin', origin: 'api', address: '127.0.0.1', auditKey: KEY };
    bootstrapSha256 = randomBytes(32);
  });

  const addToken = async (more: { name?: string; expiresAtMs?: number | null } = {}) => {
    const sha256 = randomBytes(32);
    const name = more.name ?? randomBytes(6).toString('hex');
    const token = { name, role: 'viewer' as const, sha256, expiresAtMs: null, by, atMs: world.nowMs, ...more };
    return { name, sha256, added: await world.store.addToken(token) };
  };
  const find = (sha256: Uint8Array, afterMs = 0) => world.store.findToken({ sha256, nowMs: world.nowMs + afterMs });
  const begin = async (tokenSha256: Uint8Array) => {
    const sha256 = randomBytes(32);
    const session = { name: 'ana', role: 'operator' as const, sha256, tokenSha256, by, atMs: world.nowMs };
    return { sha256, ...(await world.store.beginSession(session)) };
  };
  const findSession = (sha256: Uint8Array, afterMs = 0) =>
    world.store.findSession({ sha256, bootstrapSha256, nowMs: world.nowMs + afterMs });

  describe('a named token', () => {
    it('is found by its digest until it expires, or is revoked', async () => {
      const ending = await addToken({ expiresAtMs: world.nowMs + DAY_MS });
      expect(await find(ending.sha256, DAY_MS - 1)).not.toBeNull();
      expect(await find(ending.sha256, DAY_MS)).toBeNull();
      const { name, sha256, added } = await addToken();
      expect(added).toMatchObject({ name, role: 'viewer', createdAtMs: world.nowMs, expiresAtMs: null });
      expect(await find(sha256)).toMatchObject({ name, role: 'viewer' });
      expect(await world.store.revokeToken({ name, by, atMs: world.nowMs })).toMatchObject({
        revokedAtMs: world.nowMs,
      });
      expect(await find(sha256)).toBeNull();
      expect(await world.store.revokeToken({ name, by, atMs: world.nowMs })).toBeNull();
    });

    it('has its name for itself until it is revoked', async () => {
      const { name } = await addToken();
      expect((await addToken({ name })).added).toBe('taken');
      await world.store.revokeToken({ name, by, atMs: world.nowMs });
      expect((await addToken({ name })).added).toMatchObject({ name });
    });

    it('is listed, revoked ones last', async () => {
      const [first, second] = [await addToken(), await addToken()];
      await world.store.revokeToken({ name: first.name, by, atMs: world.nowMs });
      const names = (await world.store.listTokens()).map(({ name }) => name);
      expect(names.indexOf(first.name)).toBeGreaterThan(names.indexOf(second.name));
    });
  });

  describe('a session', () => {
    it('of the bootstrap token is valid as long as that is the token', async () => {
      const { sha256, key } = await begin(bootstrapSha256);
      expect(await findSession(sha256)).toMatchObject({ key, name: 'ana', role: 'operator' });
      bootstrapSha256 = randomBytes(32);
      expect(await findSession(sha256)).toBeNull();
    });

    it('of a named token ends with it', async () => {
      const token = await addToken({ expiresAtMs: world.nowMs + 1_000 });
      const { sha256 } = await begin(token.sha256);
      expect(await findSession(sha256)).not.toBeNull();
      expect(await findSession(sha256, 1_000)).toBeNull();
      await world.store.revokeToken({ name: token.name, by, atMs: world.nowMs });
      expect(await findSession(sha256)).toBeNull();
    });

    it('ends 12 hours after its last request, and 7 days after it began', async () => {
      const { sha256, key } = await begin(bootstrapSha256);
      expect(await findSession(sha256, DAY_MS / 2 - 1)).not.toBeNull();
      expect(await findSession(sha256, DAY_MS / 2)).toBeNull();
      for (let day = 1; day <= 14; day++) {
        await world.store.touchSession({ key, atMs: world.nowMs + (day * DAY_MS) / 2 });
      }
      expect(await findSession(sha256, 7 * DAY_MS - 1)).not.toBeNull();
      expect(await findSession(sha256, 7 * DAY_MS)).toBeNull();
    });

    it('is ended once, and not listed any longer', async () => {
      const { sha256, key } = await begin(bootstrapSha256);
      const listed = async () =>
        (await world.store.listSessions({ bootstrapSha256, nowMs: world.nowMs })).map((one) => one.key);
      expect(await listed()).toEqual([key]);
      expect(await world.store.endSession({ key, by, atMs: world.nowMs })).toMatchObject({ endedAtMs: world.nowMs });
      expect(await findSession(sha256)).toBeNull();
      expect(await listed()).toEqual([]);
      expect(await world.store.endSession({ key, by, atMs: world.nowMs })).toBeNull();
    });
  });

  describe('a sign-in link', () => {
    const add = async (tokenSha256: Uint8Array) => {
      const sha256 = randomBytes(32);
      const link = { name: 'ana', role: 'viewer' as const, sha256, tokenSha256, expiresAtMs: world.nowMs + 60_000 };
      await world.store.addSignInLink({ ...link, by, atMs: world.nowMs });
      return sha256;
    };
    const use = (linkSha256: Uint8Array, afterMs = 0) => {
      const from = { origin: 'console' as const, address: '::1', auditKey: KEY };
      const sha256 = randomBytes(32);
      return world.store.consumeSignInLink({ linkSha256, sha256, bootstrapSha256, from, atMs: world.nowMs + afterMs });
    };

    it('begins a session once', async () => {
      const link = await add(bootstrapSha256);
      expect(await Promise.all([use(link), use(link)])).toContain(null);
      expect(await use(link)).toBeNull();
      expect(await world.store.listSessions({ bootstrapSha256, nowMs: world.nowMs })).toHaveLength(1);
    });

    it('expires, and ends with its token', async () => {
      const token = await addToken();
      const [first, second] = [await add(token.sha256), await add(token.sha256)];
      expect(await use(first, 60_000)).toBeNull();
      await world.store.revokeToken({ name: token.name, by, atMs: world.nowMs });
      expect(await use(second)).toBeNull();
    });
  });

  describe('the audit chain', () => {
    const verify = async (of: World, from = NONE, wanted: Uint8Array | null = null) =>
      of.store.verifyAudit({ key: KEY, from, limit: 1_000, wanted });
    const actions = async (of: World, subject: string) =>
      (await of.store.listAudit({ limit: 50, after: null, actor: null, subject })).map(({ action }) => action);

    it('has one row for each change of a person, in its transaction, and none for the shop', async () => {
      const link = await world.openNew();
      await world.answer(link, [said('completed', { linkMoney: { amount: '60.00', currency: 'BRL' } })]);
      const { reference } = link;
      const accept = { reference, decision: 'accept', reason: 'seen', atMs: world.nowMs } as const;
      const before = await world.store.auditHead();
      await world.store.resolveOrder({ ...accept, by });
      expect(await world.store.resolveOrder({ ...accept, by })).toMatchObject({ outcome: 'already_applied' });
      expect(await actions(world, reference)).toEqual(['accept_order']);
      const [row] = await world.store.listAudit({ limit: 1, after: null, actor: 'ana', subject: reference });
      expect(row).toMatchObject({ number: before.number + 1, actor: 'ana', role: 'admin', reason: 'seen' });
      expect(JSON.parse(row?.before ?? '')).toMatchObject({ state: 'held' });
      expect(JSON.parse(row?.after ?? '')).toMatchObject({ state: 'paid' });
      const other = await world.newLink();
      await world.store.cancelOrder({ reference: other.reference, by: null, atMs: world.nowMs });
      expect(await actions(world, other.reference)).toEqual([]);
    });

    it('is whole however many write at once', async () => {
      const own = await worlds.fresh();
      await Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          own.store.recordAction({ by, change: { action: 'check_order', subject: `order-${n}` }, atMs: own.nowMs }),
        ),
      );
      expect(await verify(own)).toMatchObject({ fault: null, rows: 30, last: { number: 30 } });
      expect((await own.store.auditHead()).number).toBe(30);
    });

    it('shows a changed byte, a removed row and rows removed from the end', async () => {
      const own = await worlds.fresh();
      const record = async (subject: string) => {
        await own.store.recordAction({ by, change: { action: 'backup', subject }, atMs: own.nowMs });
        return own.store.auditHead();
      };
      for (const subject of ['a', 'b', 'c', 'd']) await record(subject);
      const logged = await record('e');
      expect(await verify(own, NONE, logged.mac)).toMatchObject({ fault: null, rows: 5, has: true });
      const otherKey = { key: Buffer.alloc(32, 8), from: NONE, limit: 10, wanted: null };
      expect(await own.store.verifyAudit(otherKey)).toMatchObject({ fault: { number: 1, what: 'changed' } });
      await own.run("UPDATE audit SET subject = 'x' WHERE number = 2");
      expect(await verify(own)).toMatchObject({ fault: { number: 2, what: 'changed' }, rows: 1 });
      await own.run("UPDATE audit SET subject = 'b' WHERE number = 2");
      expect(await verify(own)).toMatchObject({ fault: null });
      const [row] = await own.store.listAudit({ limit: 1, after: 4, actor: null, subject: null });
      await own.run('DELETE FROM audit WHERE number = 3');
      expect(await verify(own)).toMatchObject({ fault: { number: 3, what: 'removed' }, rows: 2 });
      expect(row?.number).toBe(3);
      await own.run('DELETE FROM audit WHERE number > 2');
      // The rest is whole: only the head that was logged tells.
      expect(await verify(own, NONE, logged.mac)).toMatchObject({ fault: null, rows: 2, has: false });
    });

    it('keeps the first key that it is given', async () => {
      const own = await worlds.fresh();
      const [first, second] = [1, 2].map((n) => ({ sealed: Buffer.alloc(8, n), keyId: `key-${n}` }));
      expect(await own.store.keepAuditKey(first as NonNullable<typeof first>)).toMatchObject({ keyId: 'key-1' });
      expect(await own.store.keepAuditKey(second as NonNullable<typeof second>)).toMatchObject({ keyId: 'key-1' });
      await own.store.resealAuditKey({ was: Buffer.alloc(8, 9), sealed: Buffer.alloc(8, 3), keyId: 'key-3' });
      expect(await own.store.keepAuditKey(second as NonNullable<typeof second>)).toMatchObject({ keyId: 'key-1' });
      await own.store.resealAuditKey({ was: Buffer.alloc(8, 1), sealed: Buffer.alloc(8, 3), keyId: 'key-3' });
      expect(await own.store.keepAuditKey(second as NonNullable<typeof second>)).toMatchObject({ keyId: 'key-3' });
    });
  });
}
