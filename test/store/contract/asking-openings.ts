import { beforeEach, describe, expect, it } from 'vitest';
import type { ServiceLink } from '../../../src/domain/order.ts';
import type { Store } from '../../../src/store/contract.ts';
import { openAttention } from '../../support/rows.ts';
import { FAULT, hex, LEASE_MS, type Link, said, sealedSecret, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

type Retry = Partial<Omit<Parameters<Store['retryOpening']>[0], 'linkKey' | 'attempt' | 'nowMs'>>;

export function openingsContract({ shared, fresh }: Worlds): void {
  describe('opening links', () => {
    let world: World;
    beforeEach(() => {
      world = shared();
    });

    async function matters(link: Link): Promise<string[]> {
      return (await world.timeline(link)).attention.map(({ kind }) => kind);
    }

    /** Claims the opening and hands in what the service made. */
    async function finish(link: Link, made: ServiceLink, withheld: string | null = null) {
      const { linkKey, attempt } = await world.claimOpening(link);
      return world.store.finishOpening({ linkKey, attempt, link: made, withheld, nowMs: world.nowMs });
    }

    /** Claims the opening and gives it back. */
    async function retry(link: Link, over: Retry = {}) {
      const { linkKey, attempt } = await world.claimOpening(link);
      const given = { fault: FAULT, mayExist: false, waits: false, dueAtMs: world.nowMs, ...over };
      await world.store.retryOpening({ linkKey, attempt, nowMs: world.nowMs, ...given });
    }

    async function park(link: Link, foreignId: string | null = null) {
      const { linkKey, attempt } = await world.claimOpening(link);
      await world.store.parkOpening({ linkKey, attempt, fault: FAULT, foreignId, nowMs: world.nowMs });
    }

    async function close(link: Link) {
      const { linkKey, attempt } = await world.claimOpening(link);
      return world.store.closeOpening({ linkKey, attempt, nowMs: world.nowMs });
    }

    describe('openIntent', () => {
      it('commits the order, its link and the opening, and shows the shop no link', async () => {
        const intent = world.intent();
        const intended = await world.store.openIntent(intent);
        expect(intended).toMatchObject({
          outcome: 'created',
          opening: { status: 'pending', withheld: null, fault: null },
          order: { reference: intent.reference, state: 'awaiting_payment', version: 1, link: null },
        });
        await world.reopen();
        const told = await world.timeline(intent);
        expect(told.opening).toMatchObject({ status: 'pending', attempt: 0, dueAtMs: intent.atMs });
        expect(told.history).toMatchObject([{ what: 'link is to be opened', atMs: intent.atMs }]);
        // Nothing asks about a link that is not there.
        expect(told).toMatchObject({ check: null, nextCheckAtMs: null });
        const { token, reference, secret } = intent;
        const credentials = await world.store.findCredentials({ token });
        expect(credentials).toMatchObject({ reference, keyId: 'key-1' });
        expect(hex(credentials?.sealedSecret ?? Buffer.alloc(0))).toBe(hex(secret.sealed));
      });

      it('finds the same request again, and changes nothing', async () => {
        const intent = world.intent();
        const first = await world.store.openIntent(intent);
        const before = await world.timeline(intent);
        const again = await world.store.openIntent(world.intent({ ...intent, token: 'other', atMs: world.tick() }));
        expect(again).toEqual({ ...first, outcome: 'same' });
        expect(await world.timeline(intent)).toEqual(before);
        expect(await world.store.findCredentials({ token: 'other' })).toBeNull();
      });

      it('says how far the opening is when it is asked for again', async () => {
        const intent = world.intent();
        const link = await world.intend(intent);
        await retry(link, { dueAtMs: world.nowMs + 1000 });
        expect(await world.store.openIntent(intent)).toMatchObject({ opening: { status: 'pending', fault: FAULT } });
        world.tick(1000);
        await finish(link, world.made(), 'Its currency is USD.');
        expect(await world.store.openIntent(intent)).toMatchObject({
          outcome: 'same',
          order: { link: null },
          opening: { status: 'done', withheld: 'Its currency is USD.', fault: null },
        });
      });

      it('refuses another request with the same reference', async () => {
        const intent = world.intent();
        await world.store.openIntent(intent);
        const other = await world.store.openIntent({ ...intent, request: '{"amount":"200.00"}', token: 'x' });
        expect(other).toMatchObject({ outcome: 'conflict', order: { reference: intent.reference } });
      });

      it('refuses the reference of a registered link', async () => {
        const { reference } = await world.newLink();
        expect(await world.store.openIntent(world.intent({ reference }))).toMatchObject({ outcome: 'conflict' });
      });

      it('keeps its orders from registerLink, for the same money too', async () => {
        const { reference, token } = await world.openNew();
        const registered = await world.register({ reference, linkId: world.name('plink') });
        expect(registered).toMatchObject({ outcome: 'opened_by_settled', order: { reference } });
        expect((await world.store.findCredentials({ token }))?.reference).toBe(reference);
      });
    });

    describe('keepServiceSecret', () => {
      const credentialsOf = async ({ token }: Link) => {
        const found = await world.store.findCredentials({ token });
        const { sealedSecret, serviceSealedSecret: service, serviceKeyId, isProvisional } = found ?? {};
        const [ours, theirs] = [sealedSecret, service].map((bytes) => hex(bytes ?? Buffer.of()));
        return { ours, theirs, serviceKeyId, isProvisional: Boolean(isProvisional) };
      };
      const keep = (link: Link, over: object = {}) => {
        const { linkKey, token } = link;
        const secret = { ...sealedSecret('of the service'), keyId: 'key-1' };
        return world.store.keepServiceSecret({
          ...{ linkKey, token, secret, flaw: null, nowMs: world.tick() },
          ...over,
        });
      };

      it("keeps the service's secret beside ours, and the first that it named", async () => {
        const link = await world.intend();
        const before = await credentialsOf(link);
        expect(before).toMatchObject({ theirs: '', serviceKeyId: null, isProvisional: true });
        const secret = sealedSecret('the first');
        await keep(link, { secret });
        await keep(link);
        await world.reopen();
        const kept = { ours: before.ours, theirs: hex(secret.sealed), serviceKeyId: 'key-1' };
        expect(await credentialsOf(link)).toMatchObject(kept);
        expect((await world.timeline(link)).history).toMatchObject([
          { what: 'link is to be opened' },
          { what: expect.stringContaining('named a signing secret of its own'), cause: { kind: 'reading' } },
        ]);
        await finish(link, world.made());
        expect(await credentialsOf(link)).toEqual({ ...kept, isProvisional: false });
      });

      it('keeps it for the link of that token only', async () => {
        const link = await world.intend();
        await keep(link, { token: 'of a link that was forgotten' });
        expect(await credentialsOf(link)).toMatchObject({ theirs: '' });
        await keep({ ...link, linkKey: 987_654 });
        expect((await world.timeline(link)).history).toHaveLength(1);
      });

      it('raises one matter for all links of which it cannot be used', async () => {
        world = await fresh();
        const links = [await world.intend(), await world.intend()] as const;
        for (const link of links) await keep(link, { secret: null, flaw: 'it is masked' });
        const matters = await openAttention(world.store);
        expect(matters).toMatchObject([{ kind: 'secret_unusable', subject: 'webhookSecret', count: 2 }]);
        expect(matters[0]?.detail).toContain(links[1].reference);
        const { history, secretFlaw } = await world.timeline(links[1]);
        expect(history[1]?.what).toContain('it is masked');
        expect(secretFlaw).toBe('it is masked');
        await world.run("UPDATE history SET what = 'noted otherwise'");
        expect((await world.timeline(links[1])).secretFlaw).toBe('it is masked');
        expect(await credentialsOf(links[0])).toMatchObject({ theirs: '', serviceKeyId: null });
      });

      it('has it sealed anew by itself, unless it changed since it was listed', async () => {
        const link = await world.intend();
        const { ours } = await credentialsOf(link);
        const secret = sealedSecret('as it was');
        await keep(link, { secret });
        const reseal = (sealed: string) =>
          world.store.resealSecret({
            linkKey: link.linkKey,
            whose: 'service',
            was: secret.sealed,
            sealed: Buffer.from(sealed),
            keyId: 'key-1',
            fingerprint: secret.fingerprint,
          });
        await reseal('sealed anew');
        await reseal('too late');
        const theirs = hex(Buffer.from('sealed anew'));
        expect(await credentialsOf(link)).toMatchObject({ ours, theirs });
        const listed = await world.store.listSecrets({ after: link.linkKey - 1, limit: 1 });
        expect(listed).toMatchObject([{ linkKey: link.linkKey, serviceKeyId: 'key-1' }]);
      });

      it.each([
        [true, true],
        [false, false],
      ])('says of an opening whether its answer was lost: %s', async (answerLost, isUnseen) => {
        const link = await world.intend();
        const { linkKey, attempt } = await world.claimOpening(link);
        const made = { linkKey, attempt, link: world.made(), withheld: null, answerLost, nowMs: world.nowMs };
        await world.store.finishOpening(made);
        expect((await world.timeline(link)).opening).toMatchObject({ secretUnseen: isUnseen });
        await keep(link);
        expect((await world.timeline(link)).opening).toMatchObject({ secretUnseen: false });
      });
    });

    describe('claimOpenings', () => {
      it('leases those first that were never tried: somebody waits for them', async () => {
        world = await fresh();
        const tried = await world.intend();
        await retry(tried);
        const untried = await world.intend({ atMs: world.tick() });
        const claimed = await world.store.claimOpenings({ limit: 9, nowMs: world.nowMs, leaseMs: LEASE_MS });
        expect(claimed.map(({ linkKey }) => linkKey)).toEqual([untried.linkKey, tried.linkKey]);
      });

      it('leases what is due, oldest first, up to the limit', async () => {
        world = await fresh();
        const links = [await world.intend(), await world.intend({ atMs: world.tick() })];
        await world.intend({ atMs: world.nowMs + 1 });
        const claim = (limit: number) => world.store.claimOpenings({ limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
        expect((await claim(1)).map(({ linkKey }) => linkKey)).toEqual([links[0]?.linkKey]);
        expect((await claim(9)).map(({ linkKey }) => linkKey)).toEqual([links[1]?.linkKey]);
        expect(await claim(9)).toEqual([]);
        world.tick();
        expect(await claim(9)).toHaveLength(1);
        expect(await claim(9)).toEqual([]);
      });

      it('brings all that is needed to open the link', async () => {
        const intent = world.intent({ returnToken: world.name('return'), callbackUrl: 'https://shop.example.com' });
        const link = await world.intend(intent);
        const { sealedSecret, ...claimed } = await world.claimOpening(link);
        const { reference, amount, request, token, returnToken, expiresAtMs, atMs, secret } = intent;
        expect(claimed).toEqual({
          linkKey: link.linkKey,
          attempt: 1,
          reference,
          amount,
          request,
          token,
          returnToken,
          expiresAtMs,
          keyId: 'key-1',
          linkId: null,
          mayExist: false,
          createdAtMs: atMs,
        });
        expect(hex(sealedSecret)).toBe(hex(secret.sealed));
      });

      it('claims again what was not finished within its lease, as a link that may exist', async () => {
        const link = await world.intend();
        await world.claimOpening(link);
        world.tick(LEASE_MS - 1);
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
        world.tick(1);
        expect(await world.claimOpening(link)).toMatchObject({ attempt: 2, mayExist: true });
      });

      it('voids leases when the store is opened again: the link may exist', async () => {
        const link = await world.intend();
        const { attempt } = await world.claimOpening(link);
        await world.restart();
        expect(await world.claimOpening(link)).toMatchObject({ attempt: attempt + 1, mayExist: true });
      });
    });

    describe('finishOpening', () => {
      it('binds the link, shows it to the shop, and begins to ask about it', async () => {
        const link = await world.intend();
        const expiresAtMs = world.nowMs + DAY_MS;
        const made = world.made({ shortUrl: 'https://p.example.com/x', expiresAtMs });
        expect(await finish(link, made)).toBe('bound');
        const { id, url, shortUrl, status } = made;
        const told = await world.timeline(link);
        expect(told.order.link).toEqual({ id, url, shortUrl, status, expiresAtMs });
        expect(told.opening).toMatchObject({ status: 'done', fault: null, withheld: null });
        expect(told.nextCheckAtMs).toBe(world.nowMs + 2 * MINUTE_MS);
        expect(told.history.at(-1)).toMatchObject({ what: `link ${id} opened`, cause: { kind: 'reading' } });
        expect(await world.store.findCredentials({ linkId: id })).toMatchObject({ linkKey: link.linkKey });
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
      });

      it('keeps a link that was made otherwise than asked from the shop, and tells a person', async () => {
        const link = await world.intend();
        const made = world.made();
        expect(await finish(link, made, 'Its currency is USD.')).toBe('bound');
        const told = await world.timeline(link);
        expect(told.order.link).toBeNull();
        expect(told.opening).toMatchObject({ status: 'done', withheld: 'Its currency is USD.' });
        expect(told.attention).toMatchObject([{ kind: 'link_withheld' }]);
        expect(told.attention[0]?.detail).toContain('Its currency is USD.');
        // It may be paid all the same.
        expect(told.nextCheckAtMs).not.toBeNull();
      });

      it('ends the matter of an order that waited for its link', async () => {
        const link = await world.intend();
        await retry(link, { waits: true });
        expect(await matters(link)).toEqual(['link_not_opened']);
        await finish(link, world.made());
        expect(await matters(link)).toEqual([]);
      });

      it('takes the id that an authentic event brought before', async () => {
        const link = await world.intend();
        const made = world.made();
        await world.settle(link, [said('completed')], { linkIds: [made.id] });
        expect((await world.timeline(link)).order).toMatchObject({ state: 'paid', link: null });
        expect(await finish(link, made)).toBe('bound');
        const told = await world.timeline(link);
        expect(told.order).toMatchObject({ state: 'paid', link: { id: made.id, url: made.url } });
        expect(told.nextCheckAtMs).toBe((told.order.settlement?.paidAtMs ?? 0) + DAY_MS);
      });

      it('makes a check that waited for the link due at once', async () => {
        await world.forgetChecks();
        const link = await world.intend();
        const { linkKey } = link;
        await world.reject(link);
        expect(await world.claimChecks()).toEqual([]);
        expect((await world.timeline(link)).check?.dueAtMs).toBeGreaterThan(world.nowMs);
        await finish(link, world.made());
        expect(await world.claimChecks()).toMatchObject([{ linkKey, reason: 'rejected', isOpening: false }]);
      });

      it.each([
        [
          'another order has its id',
          async () => {
            const { linkId: id } = await world.openNew();
            return { link: await world.intend(), id };
          },
        ],
        [
          'an authentic event named another id',
          async () => {
            const link = await world.intend();
            await world.settle(link, [], { linkIds: [world.name('plink')] });
            return { link, id: world.name('plink') };
          },
        ],
      ])('parks the opening where %s', async (_where, arrange) => {
        const { link, id } = await arrange();
        expect(await finish(link, world.made({ id }))).toBe('taken');
        const told = await world.timeline(link);
        expect(told.opening).toMatchObject({ status: 'taken', fault: { code: 'service_conflict' } });
        expect(told.attention).toMatchObject([{ kind: 'reference_taken' }]);
        expect(told.order.link).toBeNull();
      });

      it('does nothing for one whose lease went to somebody else', async () => {
        const link = await world.intend();
        const { linkKey, attempt } = await world.claimOpening(link);
        world.tick(LEASE_MS);
        await world.claimOpening(link);
        const before = await world.timeline(link);
        const late = { linkKey, attempt, link: world.made(), withheld: null, nowMs: world.nowMs };
        expect(await world.store.finishOpening(late)).toBe('lost');
        expect(await world.store.closeOpening({ linkKey, attempt, nowMs: world.nowMs })).toBe('lost');
        await world.store.parkOpening({ linkKey, attempt, fault: FAULT, foreignId: null, nowMs: world.nowMs });
        const given = { dueAtMs: world.nowMs, mayExist: false, waits: true, fault: FAULT, nowMs: world.nowMs };
        await world.store.retryOpening({ linkKey, attempt, ...given });
        expect(await world.timeline(link)).toEqual(before);
      });
    });

    describe('parkOpening', () => {
      it.each([
        ['plink_9', '--id plink_9'],
        [null, '--id ID'],
      ])('tells a person how to give the order the link %s', async (foreignId, option) => {
        const link = await world.intend();
        await park(link, foreignId);
        const [matter] = (await world.timeline(link)).attention;
        expect(matter?.detail).toContain(`settled orders adopt ${link.reference} ${option}`);
        expect((await world.timeline(link)).opening?.foreignId).toBe(foreignId);
      });
    });

    describe('retryOpening', () => {
      it('says that a person has to find the id of the link, until an attempt fails otherwise', async () => {
        const link = await world.intend();
        const needsId = async () => (await world.timeline(link)).opening?.needsId;
        await retry(link, { needsId: true, waits: true });
        expect(await needsId()).toBe(true);
        const [matter] = (await world.timeline(link)).attention;
        expect(matter).toMatchObject({ kind: 'link_not_opened', params: { ...FAULT, needsId: true } });
        expect(matter?.detail).toContain(`settled orders adopt ${link.reference} --id ID`);
        await retry(link, { fault: { code: 'api_budget_spent', message: 'No slot is left.' } });
        expect(await needsId()).toBe(true);
        await retry(link);
        expect(await needsId()).toBe(false);
      });

      it('keeps the fault that was in the way where only the budget was spent since', async () => {
        const link = await world.intend();
        const spent = { code: 'api_budget_spent', message: 'no slot' };
        await retry(link, { fault: spent });
        expect((await world.timeline(link)).opening).toMatchObject({ fault: spent });
        await retry(link);
        await retry(link, { fault: spent });
        expect((await world.timeline(link)).opening).toMatchObject({ fault: FAULT });
      });

      it('is due again at its time, with the fault noted', async () => {
        const link = await world.intend();
        await retry(link, { dueAtMs: world.nowMs + 5000 });
        const { opening, attention } = await world.timeline(link);
        expect(opening).toMatchObject({ status: 'pending', dueAtMs: world.nowMs + 5000, fault: FAULT });
        expect(attention).toEqual([]);
        world.tick(4999);
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
        world.tick(1);
        expect(await world.claimOpening(link)).toMatchObject({ attempt: 2, mayExist: false });
      });

      it('never forgets that the link may exist', async () => {
        const link = await world.intend();
        await retry(link, { mayExist: true });
        await retry(link, { mayExist: false });
        expect(await world.claimOpening(link)).toMatchObject({ mayExist: true });
      });

      it('tells a person once that the order waits, however often it is tried', async () => {
        const link = await world.intend();
        await retry(link, { waits: true });
        await retry(link, { waits: true });
        expect((await world.timeline(link)).attention).toMatchObject([{ kind: 'link_not_opened', count: 2 }]);
      });
    });

    describe('a link id that an authentic event brings', () => {
      it('makes the opening due at once: only the details are missing', async () => {
        const link = await world.intend();
        await retry(link, { dueAtMs: world.nowMs + 3_000_000 });
        await world.settle(link, [said('pending')], { linkIds: ['plink_from_event'] });
        expect(await world.claimOpening(link)).toMatchObject({ linkId: 'plink_from_event' });
      });

      it('leaves an opening in work to the one who has it', async () => {
        const link = await world.intend();
        const { attempt } = await world.claimOpening(link);
        await world.settle(link, [said('pending')], { linkIds: [world.name('plink')] });
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
        expect((await world.timeline(link)).opening).toMatchObject({ status: 'leased', attempt });
      });

      it('takes up a parked opening again: only the order’s own link is signed with its secret', async () => {
        const link = await world.intend();
        await park(link);
        await world.settle(link, [said('pending')], { linkIds: [world.name('plink')] });
        expect(await matters(link)).toEqual([]);
        expect(await world.claimOpening(link)).toMatchObject({ attempt: 2 });
      });
    });

    describe('closeOpening', () => {
      it('forgets the order and all that was noted of it, so that its reference can be used again', async () => {
        const intent = world.intent();
        const link = await world.intend(intent);
        await world.reject(link);
        await retry(link, { waits: true });
        expect(await close(link)).toBe('closed');
        expect(await world.store.findOrder(link.reference)).toBeNull();
        expect(await world.store.findCredentials({ token: link.token })).toBeNull();
        const open = await openAttention(world.store);
        expect(open.filter(({ subject }) => subject === link.reference)).toEqual([]);
        expect(await world.store.openIntent(intent)).toMatchObject({ outcome: 'created' });
      });

      it('never gives the key of a forgotten link to another', async () => {
        const numbers: number[] = [];
        for (let n = 0; n < 2; n++) {
          const link = await world.intend();
          expect(await close(link)).toBe('closed');
          numbers.push(link.linkKey);
        }
        await world.reopen();
        numbers.push((await world.intend()).linkKey, (await world.newLink()).linkKey);
        expect(new Set(numbers).size).toBe(4);
      });

      it.each([
        ['a recorded event', (link: Link) => world.deliver(link)],
        ['a stale event', (link: Link) => world.store.recordHint(world.hint(link))],
      ])('keeps everything where %s shows that the service has the link', async (_what, come) => {
        const link = await world.intend();
        await come(link);
        const before = await world.timeline(link);
        expect(await close(link)).toBe('kept');
        const after = await world.timeline(link);
        expect(after).toEqual({ ...before, opening: after.opening });
        world.tick(MINUTE_MS);
        expect(await world.claimOpening(link)).toMatchObject({ attempt: 2, mayExist: true });
      });
    });

    describe('adoptLink', () => {
      function adopt({ reference }: { reference: string }, link = world.made()) {
        return world.store.adoptLink({ by: null, reference, link, nowMs: world.nowMs });
      }

      it('gives a parked order the link that a person named', async () => {
        const link = await world.intend();
        await retry(link, { waits: true });
        await park(link);
        expect(await matters(link)).toEqual(['reference_taken']);
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
        const made = world.made();
        expect(await adopt(link, made)).toBe('adopted');
        const told = await world.timeline(link);
        expect(told.order.link).toMatchObject({ id: made.id, url: made.url });
        expect(told.opening).toMatchObject({ status: 'done', fault: null });
        expect(told.history.at(-1)).toMatchObject({ what: `link ${made.id} adopted`, cause: { kind: 'person' } });
        expect(told.attention).toEqual([]);
        expect(told.check).toMatchObject({ reason: 'registered', dueAtMs: world.nowMs });
        expect(await adopt(link)).toBe('not_parked');
      });

      it('gives an order a link that nobody could find, and ends that it waits', async () => {
        const link = await world.intend();
        await retry(link, { mayExist: true, waits: true });
        expect(await matters(link)).toEqual(['link_not_opened']);
        const made = world.made();
        expect(await adopt(link, made)).toBe('adopted');
        const told = await world.timeline(link);
        expect(told.order.link).toMatchObject({ id: made.id });
        expect(told).toMatchObject({ opening: { status: 'done', fault: null }, attention: [] });
        world.tick(DAY_MS);
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
      });

      it('is lost on nobody: an attempt under way changes nothing any more', async () => {
        const link = await world.intend();
        await retry(link, { mayExist: true });
        const { linkKey, attempt } = await world.claimOpening(link);
        const made = world.made();
        expect(await adopt(link, made)).toBe('adopted');
        const before = await world.timeline(link);
        expect(before.opening?.attempt).toBe(attempt + 1);
        const { nowMs } = world;
        const finished = { linkKey, attempt, link: world.made(), withheld: null, nowMs };
        expect(await world.store.finishOpening(finished)).toBe('lost');
        expect(await world.store.closeOpening({ linkKey, attempt, nowMs })).toBe('lost');
        expect(await world.timeline(link)).toEqual(before);
      });

      it('refuses an order that waits for no money', async () => {
        const link = await world.intend();
        await park(link);
        await world.store.cancelOrder({ by: null, reference: link.reference, atMs: world.nowMs });
        expect(await adopt(link)).toBe('not_open');
        expect((await world.timeline(link)).opening).toMatchObject({ status: 'taken' });
      });

      it('refuses a link that another order has', async () => {
        const { linkId } = await world.openNew();
        const link = await world.intend();
        await park(link);
        expect(await adopt(link, world.made({ id: linkId }))).toBe('taken');
        expect((await world.timeline(link)).opening).toMatchObject({ status: 'taken' });
      });

      it('refuses an order that is not parked, and one that is not there', async () => {
        expect(await adopt(await world.intend())).toBe('not_parked');
        const attempted = await world.intend();
        await world.claimOpening(attempted);
        expect(await adopt(attempted)).toBe('not_parked');
        expect(await adopt(await world.newLink())).toBe('not_parked');
        // Its opening is done, and the shop must not get its link by a detour.
        const withheld = await world.intend();
        await retry(withheld, { mayExist: true });
        const made = world.made();
        const { linkKey, attempt } = await world.claimOpening(withheld);
        const why = { withheld: 'It is in USD.', nowMs: world.nowMs };
        expect(await world.store.finishOpening({ linkKey, attempt, link: made, ...why })).toBe('bound');
        const before = await world.timeline(withheld);
        for (const named of [made, world.made()]) expect(await adopt(withheld, named)).toBe('not_parked');
        expect(await world.timeline(withheld)).toEqual(before);
        expect(await adopt({ reference: 'nobody' })).toBe('not_parked');
      });
    });
  });
}
