import type { QueryConfig } from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Store } from '../../../src/store/contract.ts';
import type { NoticeSummary } from '../../../src/store/verbs/notice_lists.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { noteUntoldMoney } from '../../../src/store/verbs/superseding.ts';
import { LEASE_MS, type Link, said, type World, worldOf } from '../contract/world.ts';
import { holding, untilBehind } from './locks.ts';
import { connectTo, openTestDatabase } from './opening.ts';
import { noting, tablesScanned } from './plans.ts';
import { openTwoReplicas, sharedReplicas, type TwoReplicas } from './two_replicas.ts';

const REFUSED = { fault: { code: 'shop_refused', message: 'The shop answered 500.' }, answer: null };
const TAKEN = { status: 204, body: '' };
const DAY_MS = 86_400_000;

describe('two replicas that tell one shop', () => {
  let url: string;
  let one: Store;
  let other: Store;
  /** What it does not matter which replica does, the first one does. */
  let world: World;

  sharedReplicas(use);

  function use(both: TwoReplicas): void {
    ({ url, one, other } = both);
    world = worldOf(one);
  }

  const pay = (link: Link) => world.settle(link, [said('completed', { paymentId: world.name('pay') })]);

  /** An order with so many notices. */
  async function told(count: number): Promise<{ link: Link; notices: NoticeSummary[] }> {
    const link = await world.newLink();
    for (let n = 0; n < count; n++) await pay(link);
    const { notices } = await world.timeline(link);
    return { link, notices };
  }

  const claim = (replica: Store, { tried = false, limit = 1000 } = {}): Promise<ClaimedNotice[]> =>
    replica.claimNotices({ tried, limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
  async function claimOne(replica: Store, options: { tried?: boolean } = {}): Promise<ClaimedNotice> {
    const [claimed] = await claim(replica, { ...options, limit: 1 });
    if (claimed === undefined) throw new Error('no notice is due');
    return claimed;
  }

  const finish = (replica: Store, claimed: ClaimedNotice) =>
    replica.finishNotice({ ...claimed, answer: TAKEN, nowMs: world.nowMs });
  const bury = (replica: Store, claimed: ClaimedNotice) =>
    replica.buryNotice({ ...claimed, ...REFUSED, nowMs: world.nowMs });
  const retry = (replica: Store, claimed: ClaimedNotice, over: object = {}) =>
    replica.retryNotice({ ...claimed, dueAtMs: world.nowMs, ...REFUSED, nowMs: world.nowMs, ...over });
  const resend = (replica: Store, { id }: { id: string }) => replica.resendNotice({ by: null, id, nowMs: world.nowMs });

  /** Ends a notice while a settlement that has locked the order writes the next one of it, whose turn has not come. */
  async function endWhileWritten<End>({ reference }: Link, type: string, end: () => Promise<End>): Promise<End> {
    const settling = await holding(url, 'SELECT 1 FROM orders WHERE reference = $1 FOR NO KEY UPDATE', [reference]);
    await settling.query(
      `INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms)
       SELECT 'next', key, $2, 3, '{}', $3 FROM orders WHERE reference = $1`,
      [reference, type, world.nowMs],
    );
    const ending = end();
    await untilBehind(settling);
    await settling.query('COMMIT');
    return ending;
  }

  describe('claims', () => {
    it('give each notice to one of them', async () => {
      for (let n = 0; n < 30; n++) await pay(await world.newLink());
      const claims = [0, 1, 2, 3].flatMap(() => [claim(one, { limit: 5 }), claim(other, { limit: 5 })]);
      const keys = (await Promise.all(claims)).flat().map(({ noticeKey }) => noticeKey);
      expect(new Set(keys).size).toBe(keys.length);
      expect(keys).toHaveLength(30);
    });

    it('pass over what somebody holds at this moment, and wait for nobody', async () => {
      const [first, second] = [await told(1), await told(1)];
      const key = first.notices[0]?.key;
      const holder = await holding(url, 'SELECT 1 FROM outbox WHERE key = $1 FOR NO KEY UPDATE', [key]);
      expect((await claim(one)).map(({ id }) => id)).toEqual(second.notices.map(({ id }) => id));
      await holder.query('ROLLBACK');
      expect((await claim(other)).map(({ id }) => id)).toEqual(first.notices.map(({ id }) => id));
    });
  });

  it('the search for news about money that waits reads none of the many notices that the shop took', async () => {
    await told(1);
    const client = await connectTo(url);
    await client.query(`
      INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms, status, attempt, first_tried_at_ms)
      SELECT 'taken', o.key, 'order.paid', n, '{}', 1, 'done', 1, 1 FROM orders o, generate_series(9, 9000) n`);
    await client.query('ANALYZE outbox');
    const db = openTestDatabase(url);
    const asked: QueryConfig[] = [];
    await db.write((tx) => noteUntoldMoney(noting(tx, asked), world.nowMs));
    await db.close();
    expect(asked).toHaveLength(1);
    const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${asked[0]?.text}`);
    expect(tablesScanned(rows)).not.toContain('outbox');
  });

  describe('a holder whose lease lapsed', () => {
    it.each([
      ['taken', finish],
      ['dead', bury],
      ['to be tried again', retry],
    ])('is told that it is lost where it says that the notice is %s', async (_what, end) => {
      const { link } = await told(2);
      const late = await claimOne(one);
      world.tick(LEASE_MS);
      const taken = await claimOne(other, { tried: true });
      expect(taken).toMatchObject({ id: late.id, attempt: 2 });
      const before = await world.timeline(link);
      expect(await end(one, late)).toBe('lost');
      expect(await world.timeline(link)).toEqual(before);
      expect(await finish(other, taken)).toBe('done');
    });

    it('is told so as well where the notice is sent again and its number of attempt is another holder’s', async () => {
      const { link } = await told(1);
      const late = await claimOne(one);
      world.tick(LEASE_MS);
      await finish(other, await claimOne(other, { tried: true }));
      await resend(other, late);
      const again = await claimOne(other);
      expect(again).toMatchObject({ id: late.id, attempt: late.attempt });
      const before = await world.timeline(link);
      for (const end of [finish, bury, retry]) expect(await end(one, late)).toBe('lost');
      expect(await world.timeline(link)).toEqual(before);
      expect(await finish(other, again)).toBe('done');
    });
  });

  it('what a replica held that stops is another one’s at once', async () => {
    const own = await openTwoReplicas();
    onTestFinished(own.close);
    use(own);
    const { notices } = await told(1);
    const { eventKey } = await world.claimNew(await world.newLink());
    await claimOne(one);
    const { linkKey } = await world.intend();
    const given = { limit: 9, nowMs: world.nowMs, leaseMs: LEASE_MS };
    await one.claimOpenings(given);
    await one.close();
    expect(await claim(other, { tried: true })).toMatchObject([{ id: notices[0]?.id, attempt: 2 }]);
    expect(await other.claimEvents(given)).toMatchObject([{ eventKey, attempt: 2 }]);
    expect(await other.claimOpenings(given)).toMatchObject([{ linkKey, attempt: 2, mayExist: true }]);
  });

  it('a notice that is written while the one before it ends has its turn', async () => {
    const { link } = await told(1);
    const claimed = await claimOne(one);
    expect(await endWhileWritten(link, 'payment.duplicate', () => finish(one, claimed))).toBe('done');
    expect(await claim(other)).toMatchObject([{ type: 'payment.duplicate' }]);
  });

  describe('a refused notice of one order', () => {
    const refused = (replica: Store, claimed: ClaimedNotice) =>
      retry(replica, claimed, { dueAtMs: world.nowMs + DAY_MS, answer: { status: 400, body: '' } });
    const seen = async (link: Link) =>
      (await world.timeline(link)).notices.map(({ type, status, isSuperseded, dueAtMs }) => {
        return `${type} ${isSuperseded ? 'superseded' : status}${dueAtMs === null ? '' : ' due'}`;
      });
    const owing = async (...facts: Parameters<World['settle']>[1]) => {
      const link = await world.newLink();
      await world.settle(link, facts);
      return link;
    };

    it('gives its turn to news about money that is written while the refusal is', async () => {
      const link = await owing(said('pending'));
      const claimed = await claimOne(one);
      expect(await endWhileWritten(link, 'order.paid', () => refused(one, claimed))).toBe('pending');
      expect(await seen(link)).toEqual(['order.payment_pending pending', 'order.paid pending due']);
      await finish(other, await claimOne(other));
      expect(await seen(link)).toEqual(['order.payment_pending superseded', 'order.paid done']);
    });

    it('stays superseded, whatever a holder says whose lease lapsed', async () => {
      const link = await owing(said('pending'), said('completed'));
      const late = await claimOne(one);
      world.tick(LEASE_MS);
      await refused(other, await claimOne(other, { tried: true }));
      await finish(one, await claimOne(one));
      const before = await world.timeline(link);
      for (const end of [finish, bury, retry, refused]) expect(await end(one, late)).toBe('lost');
      expect(await world.timeline(link)).toEqual(before);
      expect(await seen(link)).toEqual(['order.payment_pending superseded', 'order.paid done']);
      world.tick(DAY_MS);
      const claims = [one, other].flatMap((replica) => [claim(replica), claim(replica, { tried: true })]);
      expect((await Promise.all(claims)).flat()).toEqual([]);
    });

    it('is sent once more if a replica of the release before gave it the turn again, and then no more', async () => {
      const link = await owing(said('pending'), said('completed'));
      await refused(one, await claimOne(one));
      const paid = await claimOne(one);
      // What the release before writes of a notice that the shop took.
      const before = await connectTo(url);
      await before.query(`UPDATE outbox SET status = 'done', due_at_ms = NULL, holder = NULL WHERE key = $1`, [
        paid.noticeKey,
      ]);
      await before.query(`UPDATE outbox SET due_at_ms = $1 WHERE status = 'pending'`, [world.nowMs]);
      const again = await claimOne(other, { tried: true });
      expect(again.type).toBe('order.payment_pending');
      await refused(other, again);
      expect(await seen(link)).toEqual(['order.payment_pending superseded', 'order.paid done']);
    });
  });

  describe('the matter of dead notices', () => {
    const matters = async () => (await world.matters('notices_dead')).map(({ count }) => count);

    it('stays where one dies while the last other one is sent again', async () => {
      const [first, second] = [await told(1), await told(1)];
      for (const claimed of await claim(one)) if (claimed.id === first.notices[0]?.id) await bury(one, claimed);
      expect(await matters()).toEqual([1]);
      const burying = await holding(url, "UPDATE outbox SET status = 'dead', due_at_ms = NULL WHERE key = $1", [
        second.notices[0]?.key,
      ]);
      await burying.query("UPDATE attention SET count = count + 1 WHERE kind = 'notices_dead'");
      const sending = resend(other, first.notices[0] as NoticeSummary);
      await untilBehind(burying);
      await burying.query('COMMIT');
      expect(await sending).toMatchObject({ waitsFor: null });
      expect(await matters()).toEqual([2]);
    });

    it('ends where the last two are sent again at once', async () => {
      for (let n = 0; n < 2; n++) await told(1);
      const dead = await claim(one);
      for (const claimed of dead) await bury(one, claimed);
      await Promise.all(dead.map((claimed, n) => resend(n === 0 ? one : other, claimed)));
      expect(await matters()).toEqual([]);
    });
  });

  describe('attempts that fail in a row', () => {
    const matters = async () => (await world.matters('shop_refuses_notices')).map(({ count }) => count);
    const attempts = async () => (await one.shopState()).failures?.attempts ?? 0;
    /** The row, held by another program that counts an attempt. */
    const counting = () => holding(url, 'UPDATE shop_failure SET attempts = attempts + 1, raised = attempts + 1 >= 3');
    const RAISED = `INSERT INTO attention (kind, subject, detail, opened_at_ms, last_at_ms)
      VALUES ('shop_refuses_notices', 'shop', '', 0, 0)`;

    it('are counted together, be the first two at once, and the matter is one', async () => {
      for (let n = 0; n < 6; n++) await told(1);
      const claimed = await claim(one, { limit: 3 });
      const others = await claim(other, { limit: 3 });
      await Promise.all([...claimed.map((c) => retry(one, c)), ...others.map((c) => bury(other, c))]);
      expect([await attempts(), await matters()]).toEqual([6, [4]]);
    });

    it('are over where one is taken while the third of them fails: the matter that it opened ends too', async () => {
      for (let n = 0; n < 3; n++) await told(1);
      const [first, second, third] = (await claim(one)) as [ClaimedNotice, ClaimedNotice, ClaimedNotice];
      await retry(one, first);
      await retry(one, second);
      const failing = await counting();
      const taking = finish(one, third);
      await untilBehind(failing);
      await failing.query(RAISED);
      await failing.query('COMMIT');
      expect(await taking).toBe('done');
      expect([await attempts(), await matters()]).toEqual([0, []]);
    });

    it('are locked before the matter of dead notices, also by who gives a refused one up', async () => {
      const link = await world.newLink();
      await world.settle(link, [said('completed'), said('refunded')]);
      const { nowMs } = world;
      const answer = { status: 400, body: '' };
      await one.retryNotice({ ...(await claimOne(one)), dueAtMs: nowMs + DAY_MS, ...REFUSED, answer, nowMs });
      const refunded = await claimOne(one);
      // As a replica counts the attempt, and then raises the matter of the notice that died.
      const burying = await counting();
      // A deadlock would end this transaction, not the replica's, which is only carried out again.
      await burying.query(`SET LOCAL deadlock_timeout = '10ms'`);
      const taking = finish(one, refunded);
      await untilBehind(burying);
      await burying.query(RAISED.replace('shop_refuses_notices', 'notices_dead'));
      await burying.query('COMMIT');
      expect(await taking).toBe('done');
    });

    it('begin anew where one fails while the row of those before ends', async () => {
      for (let n = 0; n < 2; n++) await told(1);
      const [first, second] = (await claim(one)) as [ClaimedNotice, ClaimedNotice];
      await retry(one, first);
      const taking = await holding(url, 'DELETE FROM shop_failure');
      const failing = retry(other, second).catch(() => 'lost');
      const counted = retry(one, second);
      await untilBehind(taking);
      await taking.query('COMMIT');
      expect([await failing, await counted, await attempts()]).toEqual(['lost', 'pending', 1]);
    });

    it('are looked at by whoever claims, who waits for nobody, and raise the matter once', async () => {
      await told(1);
      await retry(one, await claimOne(one));
      world.tick(2 * 60_000);
      await told(1);
      const failing = await counting();
      expect(await claim(other, { tried: true })).toHaveLength(1);
      await failing.query('ROLLBACK');
      expect(await matters()).toEqual([]);
      await Promise.all([one, other, one, other].map((replica) => claim(replica, { tried: true })));
      expect(await matters()).toEqual([1]);
    });
  });

  describe('the feed', () => {
    /** Reads to the end. */
    async function readOn(replica: Store, after: number, limit = 1000) {
      const read: { position: number; id: string }[] = [];
      for (;;) {
        const from = read.at(-1)?.position ?? after;
        const { notices, newest } = await replica.readFeed({ after: from, limit, bytesMax: 1_000_000 });
        read.push(...notices.map(({ position, id }) => ({ position, id })));
        if (newest <= (notices.at(-1)?.position ?? from)) return read;
      }
    }

    const insertNotices = (count: number) =>
      `INSERT INTO outbox (notice_id, order_key, type, version, body, created_at_ms)
       SELECT $1, key, 'payment.duplicate', 2 + n, '{}', 1 FROM orders, generate_series(1, ${count}) n
       WHERE reference = $2 RETURNING key`;

    it('shows a notice that is committed late after those that overtook it, and ends before it till then', async () => {
      const { link } = await told(1);
      const late = await connectTo(url);
      await late.query('BEGIN');
      const written = await late.query(insertNotices(1), ['late', link.reference]);
      const { notices } = await told(1);
      expect(notices[0]?.key).toBeGreaterThan(Number(written.rows[0]?.key));
      const before = await readOn(one, 0);
      expect(before.map(({ position }) => position)).toEqual([1, 2]);
      expect(before[1]?.id).toBe(notices[0]?.id);
      expect(await one.findFeedEnd()).toMatchObject({ position: 2 });
      expect(await readOn(other, 2)).toEqual([]);
      await late.query('COMMIT');
      const name = `msg_${written.rows[0]?.key}_late`;
      expect(await readOn(other, 2)).toEqual([{ position: 3, id: name }]);
      expect(await readOn(one, 0)).toEqual([...before, { position: 3, id: name }]);
    });

    it('is numbered to its end a batch at a time, where nobody has read it', async () => {
      const { link } = await told(1);
      const writer = await connectTo(url);
      await writer.query(insertNotices(1_500), ['many', link.reference]);
      expect(await one.findFeedEnd()).toBe(null);
      expect(await other.findFeedEnd()).toMatchObject({ position: 1_501 });
      expect(await readOn(one, 1_501)).toEqual([]);
    });

    it('has each notice once, in one order for all readers, while both replicas write', async () => {
      const links = await Promise.all(Array.from({ length: 12 }, () => world.newLink()));
      let isWriting = true;
      const write = async (replica: Store, mine: readonly Link[]) => {
        const at = worldOf(replica);
        for (let n = 0; n < 4; n++) {
          const facts = [said('completed', { paymentId: `pay_${n}` })];
          await Promise.all(mine.map((link) => at.deliver(link)));
          const due = await replica.claimEvents({ limit: 1000, nowMs: at.tick(), leaseMs: LEASE_MS });
          await Promise.all(due.map((event) => replica.settle(at.job(event, { facts }))));
        }
      };
      const follow = async (replica: Store) => {
        const read: { position: number; id: string }[] = [];
        while (isWriting) read.push(...(await readOn(replica, read.at(-1)?.position ?? 0, 3)));
        read.push(...(await readOn(replica, read.at(-1)?.position ?? 0, 3)));
        return read;
      };
      const readers = [follow(one), follow(other), follow(other)];
      await Promise.all([write(one, links.slice(0, 6)), write(other, links.slice(6))]);
      isWriting = false;
      const [read = [], ...others] = await Promise.all(readers);
      const { rows: written } = await world.store.listNotices({ limit: 1000 });
      expect(written.length).toBeGreaterThanOrEqual(links.length);
      expect(read.map(({ position }) => position)).toEqual(written.map((_, n) => n + 1));
      expect(new Set(read.map(({ id }) => id))).toEqual(new Set(written.map(({ id }) => id)));
      for (const same of others) expect(same).toEqual(read);
      for (const { reference } of links) {
        const keys = new Map(written.filter((notice) => notice.reference === reference).map((n) => [n.id, n.key]));
        const inFeed = read.flatMap(({ id }) => keys.get(id) ?? []);
        expect(inFeed).toEqual([...inFeed].sort((a, b) => a - b));
      }
    });

    it('is read to its end, page after page, by who comes after many were written', async () => {
      const { link } = await told(1);
      await (await connectTo(url)).query(insertNotices(2_499), ['many', link.reference]);
      const read = await readOn(one, 0);
      expect(read.map(({ position }) => position)).toEqual(Array.from({ length: 2500 }, (_, n) => n + 1));
      expect((await one.stats(world.nowMs)).feed.newest).toBe(2500);
    });
  });

  describe('stats', () => {
    it('count what was counted before and what came since', async () => {
      // So many rows are not taken away again.
      const own = await openTwoReplicas();
      onTestFinished(own.close);
      use(own);
      const { link } = await told(1);
      const rows = 45_000;
      await (await connectTo(url)).query(
        `INSERT INTO inbox (link_key, event_id, body_sha256, timestamp, mac, status, received_at_ms, due_at_ms)
         SELECT $1, 'e' || n, '', '', '', 'done', $2, 0 FROM generate_series(1, $3::int) AS n`,
        [link.linkKey, world.nowMs, rows],
      );
      const counts = async () => {
        const { rows: counted } = await (await connectTo(url)).query<{ to_key: string }>(
          "SELECT to_key FROM counted WHERE name = 'inbox'",
        );
        return [Number(counted[0]?.to_key), (await one.stats(world.nowMs)).events.done];
      };
      // Another transaction may still commit one of them.
      await one.heartbeat(world.tick(599_000));
      expect(await counts()).toEqual([0, rows + 1]);
      await one.heartbeat(world.tick(1_000));
      expect(await counts()).toEqual([20_000, rows + 1]);
      for (let n = 0; n < 3; n++) await other.heartbeat(world.nowMs);
      expect(await counts()).toEqual([40_000, rows + 1]);
      await pay(link);
      expect((await one.stats(world.nowMs)).events.done).toBe(rows + 2);
    });
  });

  describe('dropBodies', () => {
    const drop = (replica: Store) =>
      replica.dropBodies({ untilMs: world.nowMs - DAY_MS, nowMs: world.nowMs, after: 0, limit: 100 });

    async function settledEvent(): Promise<number> {
      const { eventKey } = await world.claimNew(await world.newLink());
      await world.store.settle(world.job({ eventKey, attempt: 1 }));
      return eventKey;
    }

    it('is one replica’s turn at a time: the other ends its round', async () => {
      await told(2);
      world.tick(DAY_MS);
      const dropping = await holding(url, 'SELECT pg_advisory_xact_lock($1)', [7_331_003]);
      expect(await drop(one)).toEqual({ dropped: 0, next: null });
      await dropping.query('ROLLBACK');
      expect(await drop(other)).toEqual({ dropped: 2, next: null });
    });

    it('keeps the bytes of an event that is being replayed', async () => {
      const eventKey = await settledEvent();
      world.tick(DAY_MS);
      const replaying = await holding(url, "UPDATE inbox SET status = 'pending' WHERE key = $1", [eventKey]);
      expect(await drop(one)).toEqual({ dropped: 0, next: null });
      await replaying.query('COMMIT');
      expect(await drop(one)).toEqual({ dropped: 0, next: null });
      expect((await world.event(eventKey)).body).not.toBe(null);
    });

    it('keeps the bytes of an event that is replayed once it was found', async () => {
      const eventKey = await settledEvent();
      world.tick(DAY_MS);
      // Who drops has found the event, and waits to take its bytes.
      const replaying = await holding(url, 'LOCK TABLE inbox_body IN SHARE ROW EXCLUSIVE MODE');
      const dropping = drop(one);
      await untilBehind(replaying);
      expect(await other.requeueEvent({ by: null, eventKey, nowMs: world.nowMs })).toBe('requeued');
      await replaying.query('COMMIT');
      expect(await dropping).toEqual({ dropped: 0, next: null });
      expect((await world.event(eventKey)).body).not.toBe(null);
    });

    it('lets no event be replayed whose bytes go at this moment', async () => {
      const eventKey = await settledEvent();
      const dropping = await holding(url, 'SELECT 1 FROM inbox WHERE key = $1 FOR NO KEY UPDATE', [eventKey]);
      await dropping.query('DELETE FROM inbox_body WHERE inbox_key = $1', [eventKey]);
      const replaying = one.requeueEvent({ by: null, eventKey, nowMs: world.nowMs });
      await untilBehind(dropping);
      await dropping.query('COMMIT');
      expect(await replaying).toBe('body_dropped');
    });
  });

  it('lists what came since a time although keys have gaps', async () => {
    const { link } = await told(1);
    await (await connectTo(url)).query("SELECT setval('inbox_key_seq', 5000), setval('outbox_key_seq', 7000)");
    const sinceMs = world.tick(10_000_000);
    await pay(link);
    const page = { limit: 10, sinceMs };
    expect((await one.listEvents(page)).rows.map(({ key }) => key)).toEqual([5001]);
    expect((await one.listNotices(page)).rows.map(({ key }) => key)).toEqual([7001]);
    expect((await one.listNotices({ ...page, sinceMs: world.nowMs + 1 })).rows).toEqual([]);
    expect((await one.listNotices({ ...page, sinceMs: 0 })).rows).toHaveLength(2);
  });
});
