import type { AttentionKind } from '../../../src/domain/matter.ts';
import { REFUSES_AFTER } from '../../../src/domain/notice.ts';
import type { ClaimedNotice } from '../../../src/store/verbs/notices.ts';
import { stated } from '../../support/orders.ts';
import { FAULT, type Link, said, type World } from './world.ts';

/** What raises a kind, as often as it is called, each time a little later. */
type Cause = () => Promise<unknown>;
type End = (world: World, of: { subject: string; link: Link & { linkId: string } }) => Promise<unknown>;
type Case = {
  /** A cause about a subject of its own, or about the one subject of the kind. */
  about: (world: World) => Promise<Cause>;
  /** What ends an open matter besides a person, who may end any. */
  ends: readonly (keyof typeof ENDS)[];
  /**
   * What the cause does to a matter that is open: it is raised again; another takes its place, because what was to be
   * looked at has changed; or nothing, because the cause comes once.
   */
  again: 'counts' | 'replaces' | 'keeps';
  /** The cause comes once, and so does the matter: a person who ended it is not asked again. */
  isOnce?: true;
  /** All causes share one matter. */
  isShared?: true;
};

const MINUTE_MS = 60_000;
const LITTLE = { linkMoney: stated('60.00') };
const UNPAID = [said('unpaid', { paymentId: null })];

/** A settled event of an order after another. */
const afterPaid = (facts: (n: number) => ReturnType<typeof said>[]) => async (world: World) => {
  const link = await world.newLink();
  await world.settle(link, [said('completed')]);
  let n = 1;
  return () => world.settle(link, facts(++n));
};

/** What ends matters: deeds about the subject of a matter, or about the link of its order. */
export const ENDS = {
  paid: (world, { link }) => world.settle(link, [said('completed')]),
  cancelled: (world, { link }) => world.cancel(link),
  reading: (world, { link }) => world.answer(link, []),
  refunded: (world, { link }) => world.settle(link, [said('refunded'), said('refunded', { paymentId: 'pay_2' })]),
  replayed: (world, { subject }) => world.requeue(Number(subject)),
  registered: (world, { subject }) => world.register({ linkId: subject }),
  adopted: (world, { link: { reference } }) =>
    world.store.adoptLink({ reference, link: world.made(), by: null, nowMs: world.tick() }),
  opened: async (world) => {
    await world.run(`UPDATE opening SET due_at_ms = ${world.nowMs} WHERE status = 'pending'`);
    const [due] = await world.store.claimOpenings({ limit: 1, nowMs: world.nowMs, leaseMs: MINUTE_MS });
    const { linkKey, attempt } = due ?? (await opening(world));
    const kept = { link: world.made(), withheld: null, webhookChangedTo: null };
    await world.store.finishOpening({ linkKey, attempt, ...kept, nowMs: world.tick() });
  },
  answered: (world) => answered(world)({ failure: null, standing: 'well' }),
  authentic: async (world) => {
    const [rejected] = await world.run('SELECT link_key AS key FROM rejection');
    await world.deliver({ reference: '', token: '', linkKey: Number(rejected?.key) }, { receivedAtMs: world.tick() });
    await world.store.endRefusals(world.tick());
  },
  'quote that agrees': async (world) =>
    world.settle(await world.newLink(), [said('completed', { quoteMoney: stated('100.00') })]),
  /** The shop takes all that is owed to it. */
  taken: async (world) => {
    await world.run(`UPDATE outbox SET due_at_ms = ${world.nowMs} WHERE status = 'pending' AND attempt > 0`);
    for (const claimed of await world.claimNotices(true)) {
      await world.store.finishNotice({ ...claimed, answer: { status: 204, body: '' }, nowMs: world.tick() });
    }
    await world.claimNotices(true);
  },
  resent: async (world) => {
    const { rows } = await world.store.listNotices({ limit: 1, after: null, isCounted: false, status: 'dead' });
    await world.store.resendNotice({ by: null, id: rows[0]?.id ?? '', nowMs: world.tick() });
  },
} satisfies Record<string, End>;

const answered = (world: World) => async (over: object) =>
  world.store.returnBudget({
    number: await world.slot('create'),
    seen: null,
    pause: null,
    standing: 'unknown',
    nowMs: world.tick(MINUTE_MS),
    ...over,
  });

/** An opening that is claimed and handed to what is to become of it. */
async function opening(world: World, link?: Link) {
  const of = link ?? (await world.intend());
  const { linkKey, attempt } = await world.claimOpening(of);
  return { linkKey, attempt, nowMs: world.tick() };
}

const died = (die: (world: World, link: Link) => Promise<number>) => async (world: World) => {
  const link = await world.newLink();
  let eventKey: number | null = null;
  return async () => {
    if (eventKey === null) eventKey = await die(world, link);
    else {
      await world.requeue(eventKey);
      await bury(world, await world.claimOne(eventKey));
    }
  };
};

const bury = (world: World, of: { eventKey: number; attempt: number }) => {
  world.tick();
  return world.bury(of);
};
/** The next notice of a new paid order, claimed. */
async function notice(world: World) {
  await world.settle(await world.newLink(), [said('completed')]);
  return (await world.claimNotices(false, 100))[0] as ClaimedNotice;
}

const REFUSED = {
  fault: { code: 'shop_refused', message: 'The shop answered 401.' },
  answer: { status: 401, body: '' },
};

/** Complete over the kinds, by its type. */
export const CAUSES: { [K in AttentionKind]: Case } = {
  amount_mismatch: { again: 'counts', ends: [], about: afterPaid(() => [said('completed', LITTLE)]) },
  api_key_refused: {
    again: 'counts',
    ends: ['answered'],
    isShared: true,
    about: async (world) => () => answered(world)({ standing: 'api_key_refused' }),
  },
  deliveries_refused: {
    again: 'counts',
    ends: ['authentic'],
    isShared: true,
    about: async (world) => {
      const { linkKey } = await world.newLink();
      const reason = 'timestamp_missing';
      const matter = { fromLinks: 1 };
      return () => world.store.recordRejection({ linkKey, reason, count: 1, lastAtMs: world.tick(), matter });
    },
  },
  duplicate_payment: {
    again: 'counts',
    ends: ['refunded'],
    about: afterPaid((n) => [said('completed', { paymentId: `pay_${n}` })]),
  },
  event_conflict: {
    again: 'counts',
    ends: [],
    about: async (world) => {
      const link = await world.newLink();
      const eventId = world.name('twice');
      await world.deliver(link, { eventId });
      return () => world.deliver(link, { eventId, receivedAtMs: world.tick() });
    },
  },
  event_dead: {
    again: 'replaces',
    ends: ['replayed'],
    about: died(async (world, link) => {
      const claimed = await world.claimNew(link);
      await bury(world, claimed);
      return claimed.eventKey;
    }),
  },
  event_not_understood: {
    again: 'counts',
    ends: ['reading'],
    about: async (world) => {
      const link = await world.newLink();
      return () => world.settle(link, [], { notUnderstood: 'it names no type' });
    },
  },
  link_disabled: {
    again: 'counts',
    ends: ['reading'],
    about: async (world) => {
      const link = await world.openNew();
      return () => {
        world.tick();
        return world.answer(link, [said('disabled', { paymentId: null })]);
      };
    },
  },
  link_mismatch: {
    again: 'replaces',
    ends: ['replayed'],
    about: async (world) => {
      const link = await world.openNew();
      let eventKey: number | null = null;
      return async () => {
        world.tick();
        if (eventKey !== null) await world.requeue(eventKey);
        const claimed = eventKey === null ? await world.claimNew(link) : await world.claimOne(eventKey);
        ({ eventKey } = claimed);
        await world.store.settle(world.job(claimed, { linkIds: [world.name('other')] }));
      };
    },
  },
  link_missing: {
    again: 'counts',
    ends: ['reading'],
    about: async (world) => {
      const { linkKey } = await world.openNew();
      return () =>
        world.store.failCheck({ linkKey, dueAtMs: world.nowMs, missing: true, sent: true, nowMs: world.tick() });
    },
  },
  link_not_known: {
    again: 'keeps',
    ends: ['registered'],
    isOnce: true,
    about: async (world) => {
      const createdAtMs = world.nowMs;
      await world.run(`UPDATE instance SET restored_from_ms = ${createdAtMs}`);
      const names = { id: world.name('plink'), reference: world.name('elsewhere'), status: 'ACTIVE' };
      const items = [{ ...names, createdAtMs, money: { amount: '100.00', currency: 'BRL' } }];
      return () => world.store.compareListed({ items, toleranceMs: MINUTE_MS, nowMs: world.tick() });
    },
  },
  link_not_opened: {
    again: 'counts',
    ends: ['cancelled', 'opened'],
    about: async (world) => {
      const link = await world.intend();
      return async () => {
        // Due alone, so that the claim of another opening takes it from nobody.
        await world.run(`UPDATE opening SET due_at_ms = ${world.nowMs} WHERE link_key = ${link.linkKey}`);
        const claimed = await opening(world, link);
        const retry = { fault: FAULT, mayExist: false, waits: true, dueAtMs: world.nowMs + 3_600_000 };
        await world.store.retryOpening({ ...claimed, ...retry });
      };
    },
  },
  link_withheld: {
    again: 'keeps',
    ends: ['paid', 'cancelled'],
    isOnce: true,
    about: async (world) => {
      const finished = { ...(await opening(world)), link: world.made(), withheld: 'It is in USD.' };
      return () => world.store.finishOpening({ ...finished, nowMs: world.tick() });
    },
  },
  merchant_inactive: {
    again: 'counts',
    ends: ['answered'],
    isShared: true,
    about: async (world) => () => answered(world)({ standing: 'merchant_inactive' }),
  },
  money_unnamed: {
    again: 'keeps',
    ends: ['paid'],
    isOnce: true,
    about: async (world) => {
      const link = await world.newLink();
      return () => world.settle(link, [said('completed', { linkMoney: null })]);
    },
  },
  money_untold: {
    again: 'keeps',
    ends: ['taken'],
    isShared: true,
    about: async (world) => {
      await world.store.retryNotice({ ...(await notice(world)), ...REFUSED, ...later(world) });
      // The shop takes what another order has to tell.
      const answer = { status: 204, body: '' };
      await world.store.finishNotice({ ...(await notice(world)), answer, nowMs: world.nowMs });
      return () => {
        world.tick(3 * MINUTE_MS);
        return world.claimNotices(true, 1);
      };
    },
  },
  notices_dead: {
    again: 'counts',
    ends: ['resent'],
    isShared: true,
    about: async (world) => async () =>
      world.store.buryNotice({ ...(await notice(world)), ...REFUSED, nowMs: world.tick() }),
  },
  quote_reading_doubtful: {
    again: 'replaces',
    ends: ['quote that agrees'],
    isShared: true,
    about: async (world) => async () => {
      for (const amount of ['100.00', '90.00', '90.00', '90.00']) {
        await world.settle(await world.newLink(), [said('completed', { quoteMoney: stated(amount) })]);
      }
    },
  },
  reference_taken: {
    again: 'keeps',
    ends: ['cancelled', 'adopted', 'reading'],
    isOnce: true,
    about: async (world) => {
      const parked = { ...(await opening(world)), fault: FAULT, foreignId: 'pl_9' };
      return () => world.store.parkOpening({ ...parked, nowMs: world.tick() });
    },
  },
  refund_due: {
    again: 'counts',
    ends: ['refunded'],
    about: async (world) => {
      const link = await world.newLink();
      await world.cancel(link);
      let n = 0;
      return async () => {
        await world.settle(link, [said('completed', { paymentId: `pay_${++n}` })]);
        await world.resolve(link, 'reject');
      };
    },
  },
  secret_unusable: {
    again: 'counts',
    ends: [],
    isShared: true,
    about: async (world) => async () => {
      const { linkKey, token } = await world.intend();
      const flaw = { secret: null, flaw: 'it is short' };
      await world.store.keepServiceSecret({ linkKey, token, ...flaw, nowMs: world.tick() });
    },
  },
  service_disagrees: {
    again: 'counts',
    ends: ['reading'],
    about: async (world) => {
      const link = await world.openNew();
      await world.settle(link, [said('completed')]);
      return () => {
        world.tick();
        return world.answer(link, UNPAID);
      };
    },
  },
  service_unanswered: {
    again: 'counts',
    ends: ['answered'],
    isShared: true,
    about: async (world) => {
      await answered(world)({ failure: FAULT });
      return () => answered(world)({ failure: FAULT });
    },
  },
  shop_refuses_notices: {
    again: 'counts',
    ends: ['taken'],
    isShared: true,
    about: async (world) => {
      const refuse = async () => world.store.retryNotice({ ...(await notice(world)), ...REFUSED, ...later(world) });
      for (let n = 1; n < REFUSES_AFTER.attempts; n++) await refuse();
      return refuse;
    },
  },
  status_unclear: { again: 'counts', ends: [], about: afterPaid(() => [said('unclear')]) },
  webhook_address_changed: {
    again: 'counts',
    ends: ['opened'],
    isShared: true,
    about: async (world) => async () => {
      const finished = { ...(await opening(world)), link: world.made(), withheld: null };
      await world.store.finishOpening({ ...finished, webhookChangedTo: 'https://x.example/hooks/…/' });
    },
  },
};

const later = (world: World) => ({ nowMs: world.tick(), dueAtMs: world.nowMs + 24 * 3_600_000 });
