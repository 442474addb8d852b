import { describe, expect, it } from 'vitest';
import type { Order, OrderState } from '../../src/domain/order.ts';
import {
  changedOutcome,
  changeNotes,
  compareRegistration,
  type KnownLink,
  type LinkChange,
  type RegisteredLink,
} from '../../src/domain/registration.ts';

const FINGERPRINT = Buffer.alloc(32, 1);
const OTHER_FINGERPRINT = Buffer.alloc(32, 2);

const order = (state: OrderState = 'awaiting_payment') =>
  ({ amount: { amountMinor: 4800, currency: 'BRL' }, state }) as Order;

const link = (over: Partial<KnownLink> = {}): KnownLink => ({
  linkKey: 1,
  linkId: 'link-1',
  token: 'token',
  keyId: 'key',
  fingerprint: FINGERPRINT,
  isOpened: false,
  ...over,
});

const given = (over: Partial<RegisteredLink> = {}): RegisteredLink => ({
  amount: { amountMinor: 4800, currency: 'BRL' },
  linkId: 'link-1',
  secret: { keyId: 'key', fingerprint: FINGERPRINT },
  mayCorrect: false,
  ...over,
});

const SAME: LinkChange = { binds: false, correctsId: false, correctsSecret: false };

describe('registering a link that exists', () => {
  it('changes nothing if all of it is the same', () => {
    expect(compareRegistration(order(), link(), given(), false)).toEqual(SAME);
    expect(compareRegistration(order(), link(), given({ linkId: null, secret: null }), false)).toEqual(SAME);
  });

  it('binds an id that was missing, without the right to correct', () => {
    expect(compareRegistration(order(), link({ linkId: null }), given(), false)).toEqual({ ...SAME, binds: true });
  });

  it.each([
    ['opened_by_settled', link({ isOpened: true }), given({ mayCorrect: true }), order()],
    ['reference_conflict', link(), given({ amount: { amountMinor: 4801, currency: 'BRL' } }), order()],
    ['reference_conflict', link(), given({ amount: { amountMinor: 4800, currency: 'USD' } }), order()],
    ['link_id_conflict', link(), given({ linkId: 'link-2', mayCorrect: true }), order('paid')],
    ['correction_forbidden', link(), given({ linkId: 'link-2' }), order()],
    ['correction_forbidden', link(), given({ secret: { keyId: 'key', fingerprint: OTHER_FINGERPRINT } }), order()],
  ])('is refused as %s', (refusal, known, asked, loaded) => {
    expect(compareRegistration(loaded, known, asked, false)).toBe(refusal);
  });

  it('is refused if the id is of another order, once nothing worse is wrong', () => {
    expect(compareRegistration(order(), link({ linkId: null }), given(), true)).toBe('link_id_taken');
    expect(compareRegistration(order('paid'), link(), given({ linkId: 'link-2' }), true)).toBe('link_id_conflict');
  });

  it('corrects id and secret for a caller that may', () => {
    const asked = given({
      linkId: 'link-2',
      secret: { keyId: 'key', fingerprint: OTHER_FINGERPRINT },
      mayCorrect: true,
    });
    const change = compareRegistration(order(), link(), asked, false);
    expect(change).toEqual({ binds: false, correctsId: true, correctsSecret: true });
    expect(changeNotes(change as LinkChange, link(), asked)).toEqual([
      'link id corrected from link-1 to link-2',
      'signing secret corrected',
    ]);
  });

  it('compares fingerprints under one key only, an older key among them', () => {
    const renewed = { keyId: 'new', fingerprint: OTHER_FINGERPRINT };
    const older = [{ keyId: 'key', fingerprint: FINGERPRINT }];
    const compare = (secret: RegisteredLink['secret']) =>
      compareRegistration(order(), link(), given({ secret, mayCorrect: true }), false);
    expect(compare({ ...renewed, olderFingerprints: older })).toEqual(SAME);
    expect(compare({ keyId: 'new', fingerprint: FINGERPRINT })).toEqual({ ...SAME, correctsSecret: true });
  });

  it.each([
    ['same', SAME],
    ['bound', { ...SAME, binds: true }],
    ['corrected', { ...SAME, binds: true, correctsSecret: true }],
  ])('comes to %s', (outcome, change) => {
    expect(changedOutcome(change)).toBe(outcome);
  });
});
