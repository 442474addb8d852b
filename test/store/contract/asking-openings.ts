import { beforeEach, describe, expect, it } from 'vitest';
import { openAttention } from '../../support/rows.ts';
import { FAULT, hex, LEASE_MS, type Link, said, sealedSecret, type World, type Worlds } from './world.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

export function openingsContract({ shared, fresh }: Worlds): void {
  let world: World;
  beforeEach(() => {
    world = shared();
  });

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
      await world.retryOpening(link, { dueAtMs: world.nowMs + 1000 });
      expect(await world.store.openIntent(intent)).toMatchObject({ opening: { status: 'pending', fault: FAULT } });
      world.tick(1000);
      await world.finishOpening(link, world.made(), 'Its currency is USD.');
      expect(await world.store.openIntent(intent)).toMatchObject({
        outcome: 'same',
        order: { link: null },
        opening: { status: 'done', withheld: 'Its currency is USD.', fault: null },
      });
    });

    it('refuses another request with the same reference, and the reference of a registered link', async () => {
      const intent = world.intent();
      await world.store.openIntent(intent);
      const { reference } = await world.newLink();
      for (const other of [{ ...intent, request: '{"amount":"200.00"}', token: 'x' }, world.intent({ reference })]) {
        const order = { reference: other.reference };
        expect(await world.store.openIntent(other)).toMatchObject({ outcome: 'conflict', order });
      }
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
      return world.store.keepServiceSecret({ ...{ linkKey, token, secret, flaw: null, nowMs: world.tick() }, ...over });
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
      await world.finishOpening(link);
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

    it.each([true, false])('says of an opening whether its answer was lost: %s', async (answerLost) => {
      const link = await world.intend();
      const { linkKey, attempt } = await world.claimOpening(link);
      const made = { linkKey, attempt, link: world.made(), withheld: null, answerLost, nowMs: world.nowMs };
      await world.store.finishOpening(made);
      expect((await world.timeline(link)).opening).toMatchObject({ secretUnseen: answerLost });
      await keep(link);
      expect((await world.timeline(link)).opening).toMatchObject({ secretUnseen: false });
    });
  });

  describe('claimOpenings', () => {
    const claim = async (limit: number) => {
      const claimed = await world.store.claimOpenings({ limit, nowMs: world.nowMs, leaseMs: LEASE_MS });
      return claimed.map(({ linkKey }) => linkKey);
    };

    it('leases those first that were never tried: somebody waits for them', async () => {
      world = await fresh();
      const tried = await world.intend();
      await world.retryOpening(tried);
      const untried = await world.intend({ atMs: world.tick() });
      expect(await claim(9)).toEqual([untried.linkKey, tried.linkKey]);
    });

    it('leases what is due, oldest first, up to the limit', async () => {
      world = await fresh();
      const links = [await world.intend(), await world.intend({ atMs: world.tick() })];
      const later = await world.intend({ atMs: world.nowMs + 1 });
      for (const limit of [1, 9]) expect(await claim(limit)).toEqual([links.shift()?.linkKey]);
      expect(await claim(9)).toEqual([]);
      world.tick();
      expect([await claim(9), await claim(9)]).toEqual([[later.linkKey], []]);
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

    it.each(['its lease lapses', 'the store is opened again'])(
      'claims again what was not finished when %s, as a link that may exist',
      async (when) => {
        const link = await world.intend();
        await world.claimOpening(link);
        if (when === 'the store is opened again') await world.restart();
        else {
          world.tick(LEASE_MS - 1);
          await expect(world.claimOpening(link)).rejects.toThrow('is not due');
          world.tick(1);
        }
        expect(await world.claimOpening(link)).toMatchObject({ attempt: 2, mayExist: true });
      },
    );
  });

  describe('finishOpening', () => {
    it('binds the link, shows it to the shop, begins to ask about it, and ends that the order waits', async () => {
      const link = await world.intend();
      await world.retryOpening(link, { waits: true });
      expect(await world.kinds(link)).toEqual(['link_not_opened']);
      const expiresAtMs = world.nowMs + DAY_MS;
      const made = world.made({ shortUrl: 'https://p.example.com/x', expiresAtMs });
      expect(await world.finishOpening(link, made)).toBe('bound');
      const { id, url, shortUrl, status } = made;
      const told = await world.timeline(link);
      expect(told.order.link).toEqual({ id, url, shortUrl, status, expiresAtMs });
      expect(told.opening).toMatchObject({ status: 'done', fault: null, withheld: null });
      expect(told.attention).toEqual([]);
      expect(told.nextCheckAtMs).toBe(world.nowMs + 2 * MINUTE_MS);
      expect(told.history.at(-1)).toMatchObject({ what: `link ${id} opened`, cause: { kind: 'reading' } });
      expect(await world.store.findCredentials({ linkId: id })).toMatchObject({ linkKey: link.linkKey });
      await expect(world.claimOpening(link)).rejects.toThrow('is not due');
    });

    it('keeps a link that was made otherwise than asked from the shop, and tells a person', async () => {
      const link = await world.intend();
      const made = world.made();
      expect(await world.finishOpening(link, made, 'Its currency is USD.')).toBe('bound');
      const told = await world.timeline(link);
      expect(told.order.link).toBeNull();
      expect(told.opening).toMatchObject({ status: 'done', withheld: 'Its currency is USD.' });
      expect(told.attention).toMatchObject([{ kind: 'link_withheld' }]);
      expect(told.attention[0]?.detail).toContain('Its currency is USD.');
      // It may be paid all the same.
      expect(told.nextCheckAtMs).not.toBeNull();
    });

    it('takes the id that an authentic event brought before', async () => {
      const link = await world.intend();
      const made = world.made();
      await world.settle(link, [said('completed')], { linkIds: [made.id] });
      expect((await world.timeline(link)).order).toMatchObject({ state: 'paid', link: null });
      expect(await world.finishOpening(link, made)).toBe('bound');
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
      await world.finishOpening(link);
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
      expect(await world.finishOpening(link, world.made({ id }))).toBe('taken');
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

  it.each([
    ['plink_9', '--id plink_9'],
    [null, '--id ID'],
  ])('parkOpening tells a person how to give the order the link %s', async (foreignId, option) => {
    const link = await world.intend();
    await world.parkOpening(link, foreignId);
    const { attention, opening } = await world.timeline(link);
    expect(attention[0]?.detail).toContain(`settled orders adopt ${link.reference} ${option}`);
    expect(opening?.foreignId).toBe(foreignId);
  });

  describe('retryOpening', () => {
    it('says that a person has to find the id of the link, until an attempt fails otherwise', async () => {
      const link = await world.intend();
      const needsId = async () => (await world.timeline(link)).opening?.needsId;
      await world.retryOpening(link, { needsId: true, waits: true });
      expect(await needsId()).toBe(true);
      const [matter] = (await world.timeline(link)).attention;
      expect(matter).toMatchObject({ kind: 'link_not_opened', params: { ...FAULT, needsId: true } });
      expect(matter?.detail).toContain(`settled orders adopt ${link.reference} --id ID`);
      await world.retryOpening(link, { fault: { code: 'api_budget_spent', message: 'No slot is left.' } });
      expect(await needsId()).toBe(true);
      await world.retryOpening(link);
      expect(await needsId()).toBe(false);
    });

    it('keeps the fault that was in the way where only the budget was spent since', async () => {
      const link = await world.intend();
      const spent = { code: 'api_budget_spent', message: 'no slot' };
      await world.retryOpening(link, { fault: spent });
      expect((await world.timeline(link)).opening).toMatchObject({ fault: spent });
      await world.retryOpening(link);
      await world.retryOpening(link, { fault: spent });
      expect((await world.timeline(link)).opening).toMatchObject({ fault: FAULT });
    });

    it('is due again at its time, with the fault noted, and never forgets that the link may exist', async () => {
      const link = await world.intend();
      for (const [attempt, mayExist] of [
        [1, false],
        [2, true],
        [3, false],
      ] as const) {
        const claimed = await world.retryOpening(link, { mayExist, dueAtMs: world.nowMs + 5000 });
        expect(claimed.mayExist).toBe(attempt === 3);
        const { opening, attention } = await world.timeline(link);
        const waiting = { status: 'pending', attempt, dueAtMs: world.nowMs + 5000, fault: FAULT };
        expect([opening, attention]).toMatchObject([waiting, []]);
        world.tick(4999);
        await expect(world.claimOpening(link)).rejects.toThrow('is not due');
        world.tick(1);
      }
      expect(await world.claimOpening(link)).toMatchObject({ attempt: 4, mayExist: true });
    });
  });

  describe('a link id that an authentic event brings', () => {
    it('makes the opening due at once: only the details are missing', async () => {
      const link = await world.intend();
      await world.retryOpening(link, { dueAtMs: world.nowMs + 3_000_000 });
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
      await world.parkOpening(link);
      await world.settle(link, [said('pending')], { linkIds: [world.name('plink')] });
      expect(await world.kinds(link)).toEqual([]);
      expect(await world.claimOpening(link)).toMatchObject({ attempt: 2 });
    });
  });

  describe('closeOpening', () => {
    it('forgets the order and all that was noted of it, so that its reference can be used again', async () => {
      const intent = world.intent();
      const link = await world.intend(intent);
      await world.reject(link);
      await world.retryOpening(link, { waits: true });
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

    it.each([
      ['was parked', 'reference_taken', (link: Link) => world.parkOpening(link)],
      ['nobody could find', 'link_not_opened', (link: Link) => world.retryOpening(link, { mayExist: true })],
    ] as const)('gives an order whose link %s the link that a person named, and ends %s', async (_, kind, wait) => {
      const link = await world.intend();
      await world.retryOpening(link, { waits: true });
      await wait(link);
      expect(await world.kinds(link)).toEqual([kind]);
      const made = world.made();
      expect(await adopt(link, made)).toBe('adopted');
      const told = await world.timeline(link);
      expect(told.order.link).toMatchObject({ id: made.id, url: made.url });
      expect(told).toMatchObject({ opening: { status: 'done', fault: null }, attention: [] });
      expect(told.history.at(-1)).toMatchObject({ what: `link ${made.id} adopted`, cause: { kind: 'person' } });
      expect(told.check).toMatchObject({ reason: 'registered', dueAtMs: world.nowMs });
      expect(await adopt(link)).toBe('not_parked');
      world.tick(DAY_MS);
      await expect(world.claimOpening(link)).rejects.toThrow('is not due');
    });

    it('is lost on nobody: an attempt under way changes nothing any more', async () => {
      const link = await world.intend();
      await world.retryOpening(link, { mayExist: true });
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

    it('refuses an order that waits for no money, and a link that another order has', async () => {
      const { linkId } = await world.openNew();
      const [cancelled, open] = [await world.intend(), await world.intend({ atMs: world.nowMs + 1 })];
      for (const link of [cancelled, open]) {
        await world.parkOpening(link);
        world.tick();
      }
      await world.cancel(cancelled);
      expect(await adopt(cancelled)).toBe('not_open');
      expect(await adopt(open, world.made({ id: linkId }))).toBe('taken');
      for (const link of [cancelled, open]) expect((await world.timeline(link)).opening?.status).toBe('taken');
    });

    it('refuses an order that is not parked, and one that is not there', async () => {
      expect(await adopt(await world.intend())).toBe('not_parked');
      const attempted = await world.intend();
      await world.claimOpening(attempted);
      expect(await adopt(attempted)).toBe('not_parked');
      expect(await adopt(await world.newLink())).toBe('not_parked');
      // Its opening is done, and the shop must not get its link by a detour.
      const withheld = await world.intend();
      await world.retryOpening(withheld, { mayExist: true });
      const made = world.made();
      expect(await world.finishOpening(withheld, made, 'It is in USD.')).toBe('bound');
      const before = await world.timeline(withheld);
      for (const named of [made, world.made()]) expect(await adopt(withheld, named)).toBe('not_parked');
      expect(await world.timeline(withheld)).toEqual(before);
      expect(await adopt({ reference: 'nobody' })).toBe('not_parked');
    });
  });
}
