import { beforeEach, describe, expect, it } from 'vitest';
import type { Registered, Registration } from '../../../src/store/verbs/links.ts';
import { hex, said, sealedSecret, type World, type Worlds } from './world.ts';

const BRL = (amountMinor: number) => ({ amountMinor, currency: 'BRL' });

export function linksContract({ shared }: Worlds): void {
  let world: World;
  beforeEach(() => {
    world = shared();
  });

  /** The sealed secret that a token's deliveries are verified with. */
  async function secretOf(token: string): Promise<string> {
    const found = await world.store.findCredentials({ token });
    return hex(found?.sealedSecret ?? Buffer.of());
  }

  /** Registers a link, then registers its order once more with other content; the token stays the first one's. */
  async function registerTwice(first: Partial<Registration>, second: Partial<Registration>) {
    const registration = world.registration(first);
    await world.store.registerLink(registration);
    const { reference, token } = registration;
    const before = await world.timeline({ reference });
    const again = await world.register({ reference, atMs: world.tick(), ...second });
    return { registration, before, again, token };
  }

  describe('resealSecret', () => {
    it('leaves a secret alone that was corrected since it was listed', async () => {
      const { token, linkKey } = await world.newLink();
      const [listed] = await world.store.listSecrets({ after: linkKey - 1, limit: 1 });
      const was = listed?.sealedSecret ?? Buffer.of();
      const reseal = (sealed: string) =>
        world.store.resealSecret({ linkKey, was, sealed: Buffer.from(sealed), keyId: 'key-1', fingerprint: was });
      await reseal('sealed anew');
      expect(await secretOf(token)).toBe(hex(Buffer.from('sealed anew')));
      await reseal('too late');
      expect(await secretOf(token)).toBe(hex(Buffer.from('sealed anew')));
    });
  });

  describe('registerLink', () => {
    it('reserves a link for a new order, with the fresh secret', async () => {
      const registration = world.registration({ amount: BRL(12_345) });
      const { reference, token, freshSecret } = registration;
      const registered = await world.store.registerLink(registration);
      expect(registered).toMatchObject({
        outcome: 'created',
        token,
        linkKey: (await world.store.findCredentials({ token }))?.linkKey,
      });
      expect(registered).toMatchObject({
        order: {
          reference,
          amount: BRL(12_345),
          state: 'awaiting_payment',
          flags: [],
          version: 1,
          createdAtMs: world.nowMs,
          settlement: null,
          entries: [],
          adoptedPaymentId: null,
          holds: [],
          resolution: null,
          lastReading: null,
          link: { id: null, url: null, shortUrl: null, status: null, expiresAtMs: null },
        },
      });
      expect(await secretOf(token)).toBe(hex(freshSecret.sealed));
    });

    it('registers a link that exists, with the secret that is given', async () => {
      const secret = sealedSecret('given');
      const linkId = world.name('pl');
      const registration = world.registration({ linkId, secret });
      const registered = await world.store.registerLink(registration);
      expect(registered).toMatchObject({ outcome: 'created', order: { link: { id: linkId } } });
      expect(await secretOf(registration.token)).toBe(hex(secret.sealed));
    });

    it('answers the same registration again with the same order and token, and changes nothing', async () => {
      const { again, token, before, registration } = await registerTwice({}, {});
      expect(again).toMatchObject({ outcome: 'same', token, order: before.order });
      expect(await secretOf(token)).toBe(hex(registration.freshSecret.sealed));
      expect((await world.timeline(registration)).history).toEqual(before.history);
    });

    it.each([true, false])('takes a secret that is sealed anew but equal for the same: may correct %s', async (may) => {
      const first = sealedSecret('equal');
      const again = { secret: sealedSecret('equal'), mayCorrect: may };
      const registered = await registerTwice({ secret: first }, again);
      expect(registered.again.outcome).toBe('same');
      expect(await secretOf(registered.token)).toBe(hex(first.sealed));
    });

    it('binds a link id that was missing, and says so in the history', async () => {
      const linkId = world.name('pl');
      const { again, token, registration } = await registerTwice({}, { linkId });
      expect(again).toMatchObject({ outcome: 'bound', token, order: { link: { id: linkId } } });
      expect((await world.store.findCredentials({ linkId }))?.token).toBe(token);
      const { history } = await world.timeline(registration);
      expect(history.map(({ what }) => what)).toEqual(['link reserved', `link ${linkId} bound`]);
      expect((await world.register({ reference: registration.reference, linkId })).outcome).toBe('same');
    });

    it('corrects a signing secret, and says so in the history without the secret', async () => {
      const secret = sealedSecret('the right one');
      const { again, token, registration } = await registerTwice({}, { secret });
      expect(again).toMatchObject({ outcome: 'corrected', token });
      expect(await secretOf(token)).toBe(hex(secret.sealed));
      const { history } = await world.timeline(registration);
      expect(history.map(({ what }) => what)).toEqual(['link reserved', 'signing secret corrected']);
    });

    it('binds and corrects in one call', async () => {
      const secret = sealedSecret('the right one');
      const linkId = world.name('pl');
      const { again, token } = await registerTwice({}, { secret, linkId });
      expect(again).toMatchObject({ outcome: 'corrected', order: { link: { id: linkId } } });
      expect(await secretOf(token)).toBe(hex(secret.sealed));
    });

    it.each<[string, boolean, (taken: string) => Partial<Registration>, Registered['outcome']]>([
      ['another amount', false, () => ({ amount: BRL(10_001), linkId: world.name('pl') }), 'reference_conflict'],
      [
        'another currency',
        false,
        () => ({ amount: { ...BRL(10_000), currency: 'USD' }, linkId: world.name('pl') }),
        'reference_conflict',
      ],
      [
        'another link id by a caller who may not',
        true,
        () => ({ linkId: world.name('pl'), mayCorrect: false }),
        'correction_forbidden',
      ],
      [
        'another secret by a caller who may not, and binds nothing either',
        false,
        () => ({ secret: sealedSecret('forged'), linkId: world.name('pl'), mayCorrect: false }),
        'correction_forbidden',
      ],
      ['the link id of another order in the place of its own', true, (linkId) => ({ linkId }), 'link_id_taken'],
      ['the link id of another order', false, (linkId) => ({ linkId }), 'link_id_taken'],
    ])('refuses a known reference with %s', async (_what, hasLink, other, outcome) => {
      const taken = world.name('pl');
      const owner = await world.newLink({ linkId: taken });
      const first = hasLink ? { linkId: world.name('pl') } : {};
      const { again, registration, before, token } = await registerTwice(first, other(taken));
      const named = outcome === 'link_id_taken' ? (await world.timeline(owner)).order : before.order;
      expect(again).toEqual({ outcome, order: named });
      expect(await world.timeline(registration)).toEqual(before);
      expect(await secretOf(token)).toBe(hex(registration.freshSecret.sealed));
    });

    it('corrects the link id of an open order, and says from which to which in the history', async () => {
      const [typo, linkId] = [world.name('typo'), world.name('pl')];
      const { again, token, registration } = await registerTwice({ linkId: typo }, { linkId });
      expect(again).toMatchObject({ outcome: 'corrected', token, order: { link: { id: linkId } } });
      const { history } = await world.timeline(registration);
      expect(history.map(({ what }) => what)).toEqual([
        `link ${typo} registered`,
        `link id corrected from ${typo} to ${linkId}`,
      ]);
      expect(history.at(-1)?.cause).toEqual({ kind: 'person', id: null });
      expect((await world.store.findCredentials({ linkId }))?.token).toBe(token);
      expect(await world.store.findCredentials({ linkId: typo })).toBeNull();
    });

    it.each([
      ['paid', {}],
      ['held', { linkMoney: { amount: '60.00', currency: 'BRL' } }],
    ])('refuses another link id for an order that is %s', async (state, money) => {
      const link = await world.newLink({ linkId: world.name('pl') });
      await world.settle(link, [said('completed', money)]);
      const before = await world.timeline(link);
      expect(before.order.state).toBe(state);
      const again = await world.register({ reference: link.reference, linkId: world.name('pl') });
      expect(again).toEqual({ outcome: 'link_id_conflict', order: before.order });
      expect(await world.timeline(link)).toEqual(before);
    });

    it('refuses the link id of another order for a new order, and names the owner', async () => {
      const linkId = world.name('pl');
      const owner = await world.newLink({ linkId });
      const registration = world.registration({ linkId });
      expect(await world.store.registerLink(registration)).toMatchObject({
        outcome: 'link_id_taken',
        order: { reference: owner.reference },
      });
      expect(await world.store.findOrder(registration.reference)).toBeNull();
    });

    it('queues a check each time, and keeps one for a link, with the reason that came first', async () => {
      const link = await world.newLink();
      expect(await world.check(link)).toBe('registered');
      for (const reason of ['registered', 'stale']) {
        await world.forgetChecks();
        if (reason === 'stale') await world.store.recordHint(world.hint(link));
        await world.register({ reference: link.reference });
        expect(await world.check(link)).toBe(reason);
      }
    });

    it('knows its registration again when the store is opened again', async () => {
      const link = await world.newLink({ linkId: world.name('pl') });
      await world.reopen();
      expect((await world.register({ reference: link.reference })).outcome).toBe('same');
    });
  });
}
