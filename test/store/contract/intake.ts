import { randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KeptReason } from '../../../src/vocabulary.ts';
import { hex, type Link, sealedSecret, sha256, type World, type Worlds } from './world.ts';

export function intakeContract({ shared }: Worlds): void {
  let world: World;
  let link: Link;
  beforeEach(async () => {
    world = shared();
    link = await world.newLink();
  });

  describe('findCredentials', () => {
    it('finds the same link by its token, its link id and its key', async () => {
      const linkId = world.name('pl');
      const freshSecret = sealedSecret('the secret');
      const { token, linkKey, reference } = await world.newLink({ linkId, freshSecret });
      for (const by of [{ token }, { linkId }, { linkKey }, { reference }]) {
        const found = await world.store.findCredentials(by);
        const isProvisional = Boolean(found?.isProvisional);
        expect({ ...found, sealedSecret: hex(found?.sealedSecret ?? Buffer.of()), isProvisional }).toEqual({
          linkKey,
          linkId,
          token,
          reference,
          sealedSecret: hex(freshSecret.sealed),
          keyId: 'key-1',
          serviceSealedSecret: null,
          serviceKeyId: null,
          isProvisional: false,
        });
      }
    });

    it('finds each of those that are asked for at once, and nothing for those that are not there', async () => {
      const others = await Promise.all([world.newLink(), world.newLink()]);
      const tokens = [link, ...others].flatMap(({ token }, n) => [`nobody has ${n}`, token]);
      const found = await Promise.all(tokens.map((token) => world.store.findCredentials({ token })));
      const keys = [link, ...others].flatMap(({ linkKey }) => [undefined, linkKey]);
      expect(found.map((credentials) => credentials?.linkKey)).toEqual(keys);
      for (const by of [{ token: 'nobody' }, { linkId: 'pl_nobody' }, { linkKey: 987_654 }, { reference: 'nobody' }]) {
        expect([by, await world.store.findCredentials(by)]).toEqual([by, null]);
      }
    });
  });

  describe('recordDelivery', () => {
    it('records a delivery as a job that is due at once', async () => {
      const { outcome, eventKey } = await world.deliver(link, { eventId: 'evt_1' });
      expect(outcome).toBe('recorded');
      expect(await world.event(eventKey)).toMatchObject({
        eventId: 'evt_1',
        reference: link.reference,
        type: 'payment_link.payment_status_changed',
        status: 'pending',
        attempt: 0,
        conflict: false,
        duplicates: 0,
        receivedAtMs: world.nowMs,
        dueAtMs: world.nowMs,
        endedAtMs: null,
        outcome: null,
        fault: null,
      });
      expect(await world.claimOne(eventKey)).toMatchObject({ linkKey: link.linkKey, attempt: 1 });
    });

    it.each([
      ['empty', Buffer.of()],
      ['every byte there is', Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))],
      ['not UTF-8', Buffer.from('22ff22', 'hex')],
      ['a byte order mark and NULs', Buffer.from('efbbbf0000', 'hex')],
      ['256 KiB', randomBytes(256 * 1024)],
    ])('keeps a body byte for byte: %s', async (_what, body) => {
      const mac = randomBytes(32);
      const { eventKey } = await world.deliver(link, { body, mac, timestamp: '1700000000123' });
      const stored = await world.event(eventKey);
      expect(hex(stored.body)).toBe(hex(body));
      expect(hex(stored.bodySha256)).toBe(hex(sha256(body)));
      const claimed = await world.claimOne(eventKey);
      expect(hex(claimed.body)).toBe(hex(body));
      expect(hex(claimed.mac)).toBe(hex(mac));
      expect([claimed.timestamp, stored.timestamp]).toEqual(['1700000000123', '1700000000123']);
    });

    it('keeps what it recorded when the store is opened again, and knows its duplicate', async () => {
      const delivery = world.delivery(link, { body: randomBytes(1000) });
      const { eventKey } = await world.store.recordDelivery(delivery);
      await world.reopen();
      expect(hex((await world.event(eventKey)).body)).toBe(hex(delivery.body));
      expect(await world.store.recordDelivery(delivery)).toEqual({ outcome: 'duplicate', eventKey });
    });

    it('counts the same content under the same id as a duplicate of one row', async () => {
      const delivery = world.delivery(link);
      const first = await world.store.recordDelivery(delivery);
      const again = { ...delivery, timestamp: '1700000000999', mac: randomBytes(32) };
      expect(await world.store.recordDelivery(again)).toEqual({ ...first, outcome: 'duplicate' });
      expect((await world.timeline(link)).events).toHaveLength(1);
      expect(await world.event(first.eventKey)).toMatchObject({ duplicates: 1, timestamp: delivery.timestamp });
    });

    it('records other content under the same id as a conflict: a row of its own, flagged, to be settled', async () => {
      const first = await world.deliver(link, { eventId: 'evt_1', body: Buffer.from('one') });
      const second = await world.deliver(link, { eventId: 'evt_1', body: Buffer.from('two') });
      expect(second.outcome).toBe('conflict');
      expect(second.eventKey).not.toBe(first.eventKey);
      const { events, attention } = await world.timeline(link);
      expect(events.map(({ key, conflict }) => ({ key, conflict }))).toEqual([
        { key: first.eventKey, conflict: false },
        { key: second.eventKey, conflict: true },
      ]);
      expect(attention).toMatchObject([{ kind: 'event_conflict', reference: link.reference, count: 1 }]);
      const claimed = (await world.claim()).map(({ eventKey }) => eventKey);
      expect(claimed).toEqual(expect.arrayContaining([first.eventKey, second.eventKey]));
    });

    it('takes each content of a conflict as the duplicate of its own row', async () => {
      const contents = ['one', 'two', 'three', 'four'].map((text) => Buffer.from(text));
      const rows: number[] = [];
      for (const body of contents) {
        rows.push((await world.deliver(link, { eventId: 'evt_1', body })).eventKey);
      }
      const again = await Promise.all(contents.map((body) => world.deliver(link, { eventId: 'evt_1', body })));
      expect(again).toEqual(rows.map((eventKey) => ({ outcome: 'duplicate', eventKey })));
      expect(new Set(rows).size).toBe(4);
    });

    it('raises one matter for all conflicts of a link, which counts them and names the newest', async () => {
      const other = await world.newLink();
      for (const eventId of ['evt_1', 'evt_2']) {
        for (const text of ['one', 'two', 'three']) {
          await world.deliver(link, { eventId, body: Buffer.from(text) });
        }
        await world.deliver(other, { eventId, body: Buffer.from(eventId) });
      }
      const { eventKey } = await world.deliver(link, { eventId: 'evt_2', body: Buffer.from('four') });
      const [matter, ...more] = (await world.timeline(link)).attention;
      expect(more).toEqual([]);
      expect(matter).toMatchObject({ kind: 'event_conflict', subject: `link ${link.linkKey}`, count: 5 });
      expect(matter?.detail).toMatch(
        new RegExp(
          `^Event id evt_2 came again with other content .*settled events show ${eventKey}\\. Then end this matter: settled attention end \\d+ --reason TEXT$`,
        ),
      );
      expect((await world.timeline(other)).attention).toEqual([]);
    });

    it('does not let one link’s event id hide another link’s event', async () => {
      const other = await world.newLink();
      const body = Buffer.from('the same');
      await world.deliver(link, { eventId: 'evt_1', body });
      expect((await world.deliver(other, { eventId: 'evt_1', body })).outcome).toBe('recorded');
    });

    it('re-arms a dead row with what came now: what is stored may not carry its signature any more', async () => {
      const delivery = world.delivery(link);
      const { eventKey } = await world.store.recordDelivery(delivery);
      await world.bury(await world.claimOne(eventKey));
      expect(await world.kinds(link)).toEqual(['event_dead']);
      const again = { ...delivery, timestamp: '1700000000999', mac: randomBytes(32), receivedAtMs: world.tick() };
      expect(await world.store.recordDelivery(again)).toEqual({ outcome: 'duplicate', eventKey });
      expect(await world.event(eventKey)).toMatchObject({
        status: 'pending',
        attempt: 0,
        dueAtMs: again.receivedAtMs,
        endedAtMs: null,
      });
      expect(await world.kinds(link)).toEqual([]);
      const claimed = await world.claimOne(eventKey);
      expect([claimed.attempt, claimed.timestamp]).toEqual([1, again.timestamp]);
      expect([hex(claimed.mac), hex(claimed.body)]).toEqual([hex(again.mac), hex(again.body)]);
    });

    it.each(['leased', 'done'])('leaves a %s row alone when its event is delivered again', async (status) => {
      const delivery = world.delivery(link);
      const { eventKey } = await world.store.recordDelivery(delivery);
      const claimed = await world.claimOne(eventKey);
      if (status === 'done') await world.store.settle(world.job(claimed));
      const before = await world.event(eventKey);
      expect(before).toMatchObject({ status, attempt: claimed.attempt });
      await world.store.recordDelivery({ ...delivery, receivedAtMs: world.tick() });
      expect(await world.event(eventKey)).toEqual({ ...before, duplicates: 1 });
    });

    it('queues no check for a body that can be read', async () => {
      await world.forgetChecks();
      await world.deliver(link);
      expect(await world.check(link)).toBeNull();
    });
  });

  describe('recordHint', () => {
    it('keeps a stale delivery outside the dedupe key: the first fresh one of the same bytes is new', async () => {
      const delivery = world.delivery(link);
      const { eventId, body, bodySha256, timestamp, receivedAtMs } = delivery;
      const { linkKey } = link;
      await world.store.recordHint({ linkKey, eventId, body, bodySha256, timestamp, receivedAtMs });
      expect((await world.timeline(link)).events).toEqual([]);
      expect((await world.store.recordDelivery(delivery)).outcome).toBe('recorded');
    });

    it('counts one stale delivery that comes again, with its newest timestamp', async () => {
      const body = Buffer.from('stale');
      await world.store.recordHint(world.hint(link, body));
      const second = world.hint(link, body);
      await world.store.recordHint(second);
      expect((await world.timeline(link)).hints).toEqual([
        { eventId: 'evt_stale', timestamp: second.timestamp, lastAtMs: second.receivedAtMs, count: 2 },
      ]);
    });

    it('keeps a bounded number of hints for each link, the newest', async () => {
      const other = await world.newLink();
      await world.store.recordHint(world.hint(other));
      const hints = Array.from({ length: 30 }, () => world.hint(link));
      for (const hint of hints) await world.store.recordHint(hint);
      const kept = (await world.timeline(link)).hints;
      expect(kept.map((hint) => hint.lastAtMs)).toEqual(hints.slice(-20).map((hint) => hint.receivedAtMs));
      expect((await world.timeline(other)).hints).toHaveLength(1);
    });
  });

  describe('recordRejection', () => {
    it('counts the refused deliveries of one link and reason in one row', async () => {
      const { linkKey, reference } = link;
      const firstAtMs = world.nowMs;
      const reason = 'signature_wrong';
      await world.store.recordRejection({ linkKey, reason, count: 3, lastAtMs: firstAtMs });
      const lastAtMs = world.tick();
      await world.store.recordRejection({ linkKey, reason, count: 4, lastAtMs });
      await world.store.recordRejection({ linkKey, reason: 'timestamp_missing', count: 1, lastAtMs });
      expect((await world.timeline(link)).rejections).toMatchObject([
        { reference, reason, count: 7, firstAtMs, lastAtMs },
        { reference, reason: 'timestamp_missing', count: 1, firstAtMs: lastAtMs, lastAtMs },
      ]);
    });

    it('keeps the newest diagnosis, also when one comes that was not diagnosed', async () => {
      const { linkKey } = link;
      const reject = (diagnosis: string | null) =>
        world.store.recordRejection({
          ...{ linkKey, reason: 'signature_wrong', count: 1, lastAtMs: world.tick(), diagnosis },
        });
      const kept = async () => (await world.timeline(link)).rejections.map((one) => one.diagnosis);
      await reject(null);
      expect(await kept()).toEqual([null]);
      await reject('{"code":"one"}');
      await reject('{"code":"two"}');
      await reject(null);
      expect(await kept()).toEqual(['{"code":"two"}']);
      const { store } = world;
      const { rows: listed } = await store.listRejections({ limit: 1, reference: link.reference });
      expect(listed).toMatchObject([{ diagnosis: '{"code":"two"}', count: 4 }]);
    });

    /** A delivery of a link of its own is refused. */
    async function refused(reason: KeptReason, fromLinks = 3, of?: Link): Promise<Link> {
      const one = of ?? (await world.newLink());
      const { linkKey } = one;
      const diagnosis = JSON.stringify({ code: 'body_size', bytes: world.nowMs });
      const matter = { fromLinks };
      await world.store.recordRejection({ linkKey, reason, count: 1, lastAtMs: world.nowMs, diagnosis, matter });
      return one;
    }

    async function matters(reason: KeptReason): Promise<object[]> {
      return (await world.matters('deliveries_refused')).filter(({ subject }) => subject === reason);
    }

    it('raises one matter from the third link of one reason on', async () => {
      world.tick(7_200_000);
      const first = await refused('timestamp_missing');
      await refused('timestamp_missing', 3, first);
      await refused('timestamp_repeated');
      await refused('timestamp_missing');
      expect(await matters('timestamp_missing')).toEqual([]);
      await refused('timestamp_missing');
      const detail = expect.stringContaining(`Its body has ${world.nowMs} bytes.`);
      expect(await matters('timestamp_missing')).toMatchObject([{ reference: null, count: 1, detail }]);
      await refused('timestamp_missing');
      expect(await matters('timestamp_missing')).toMatchObject([{ count: 2 }]);
      expect(await matters('timestamp_repeated')).toEqual([]);
    });

    it('does not raise it at the first link after an authentic delivery of any: anybody may name headers', async () => {
      world.tick(7_200_000);
      await world.deliver(await world.newLink());
      const link = async () => {
        const { linkKey } = await world.newLink();
        const matter = { fromLinks: 3, atFirst: true };
        const { nowMs: lastAtMs } = world;
        await world.store.recordRejection({ linkKey, reason: 'signature_repeated', count: 1, lastAtMs, matter });
      };
      await link();
      await link();
      expect(await matters('signature_repeated')).toEqual([]);
      await link();
      expect(await matters('signature_repeated')).toHaveLength(1);
    });

    it('does not count links that were refused more than an hour ago, or verified since', async () => {
      world.tick(7_200_000);
      await refused('signature_malformed');
      await refused('signature_malformed');
      world.tick(3_600_000);
      await refused('signature_malformed');
      const recovered = await refused('signature_malformed');
      world.tick();
      await world.deliver(recovered);
      await refused('signature_malformed');
      expect(await matters('signature_malformed')).toEqual([]);
      await refused('signature_malformed');
      expect(await matters('signature_malformed')).toHaveLength(1);
    });

    it('ends the matter after an authentic delivery of a link that it is about, and not of another', async () => {
      world.tick(7_200_000);
      const [one] = [await refused('content_encoding'), await refused('content_encoding')];
      await refused('content_encoding');
      await refused('body_too_large', 1);
      world.tick();
      await world.deliver(await world.newLink());
      await world.store.endRefusals(world.tick());
      expect(await matters('content_encoding')).toHaveLength(1);
      await world.deliver(one);
      await world.store.endRefusals(world.tick());
      expect(await matters('content_encoding')).toEqual([]);
      expect(await matters('body_too_large')).toHaveLength(1);
    });

    it('ends the matter of a reason that is one setting for all links after an authentic delivery of any', async () => {
      world.tick(7_200_000);
      await refused('timestamp_missing', 1);
      await world.store.endRefusals(world.tick());
      expect(await matters('timestamp_missing')).toHaveLength(1);
      await world.deliver(await world.newLink());
      await world.store.endRefusals(world.tick());
      expect(await matters('timestamp_missing')).toEqual([]);
    });
  });
}
