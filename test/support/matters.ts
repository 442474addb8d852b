import { type AttentionKind, type AttentionParams, decidedParams } from '../../src/domain/matter.ts';
import { HOLD_REASONS } from '../../src/domain/order.ts';
import type { TestApp } from './app.ts';
import { orderIn } from './orders.ts';
import { tamper } from './rows.ts';

type Sample<K extends AttentionKind> = [subject: string, params: AttentionParams[K]];
const PAYMENTS = decidedParams('status_unclear', orderIn('paid'));
const FAULT = { code: 'bug', message: 'It went wrong.' };
const FAILURES = { attempts: 3, sinceMs: 0, lastAtMs: 1, fault: FAULT, answer: { status: 500, body: 'oh no' } };

/** Of each kind what a row may keep. */
export const SAMPLE_MATTERS: { [K in AttentionKind]: Sample<K> } = {
  amount_mismatch: ['a b', PAYMENTS],
  api_key_refused: ['api', {}],
  deliveries_refused: ['body_too_large', { diagnosis: { code: 'body_size', bytes: 5 } }],
  duplicate_payment: ['a b', { isHeld: true, owed: PAYMENTS.payments, kept: null }],
  event_conflict: ['link 1', { eventId: 'evt_1', beforeKey: 3, eventKey: 4 }],
  event_dead: ['4', FAULT],
  event_not_understood: ['a b', { event: { key: 4, why: 'It is a list.', isUnanswered: true }, paidByEvent: 5 }],
  link_disabled: ['a b', {}],
  link_mismatch: ['4', FAULT],
  link_missing: ['a b', {}],
  link_not_known: ['pl 9', { reference: 'a b', amount: '10', currency: 'BRL', createdAtMs: 0, otherId: null }],
  link_not_opened: ['a b', { ...FAULT, needsId: true }],
  link_withheld: ['a b', { linkId: 'pl_9', why: 'It is in USD.' }],
  merchant_inactive: ['api', {}],
  money_unnamed: ['a b', { amount: { amountMinor: 1234, currency: 'BRL' } }],
  money_untold: ['shop', { notice: 'n-1', reference: 'order-1', sinceMs: 0 }],
  notices_dead: ['shop', { notice: 'n-1', message: 'It is gone.' }],
  quote_reading_doubtful: ['quote', { count: 3 }],
  reference_taken: ['a b', { ...FAULT, foreignId: 'pl 9' }],
  refund_due: ['a b', PAYMENTS],
  secret_unusable: ['webhookSecret', { reference: 'a b', flaw: 'it is short' }],
  service_disagrees: ['a b', PAYMENTS],
  service_unanswered: [
    'api',
    { requests: 3, sinceMs: 0, unpaid: 5, code: 'service_failed', message: 'It answered 503.' },
  ],
  shop_refuses_notices: ['shop', FAILURES],
  status_unclear: ['a b', PAYMENTS],
  webhook_address_changed: ['webhookUrl', { reference: 'a b', address: 'https://x.example/hooks/…/' }],
};

/** Kinds that are about no order, but about all of them or about none that is known. */
const OF_NO_ORDER: ReadonlySet<string> = new Set<AttentionKind>([
  'api_key_refused',
  'deliveries_refused',
  'link_not_known',
  'merchant_inactive',
  'money_untold',
  'notices_dead',
  'quote_reading_doubtful',
  'secret_unusable',
  'service_unanswered',
  'shop_refuses_notices',
  'webhook_address_changed',
]);

/**
 * Puts one matter of each kind, and an order that is held for each reason, into the SQLite file of a running settled. The
 * oldest of them has waited `n` minutes, and each other a minute less than the one before it.
 */
export async function seedEveryMatter(app: TestApp, nowMs: number): Promise<{ matters: number }> {
  const all = [...HOLD_REASONS.map((reason) => ['hold', reason] as const), ...Object.entries(SAMPLE_MATTERS)];
  for (const [at, [kind, about]] of all.entries()) {
    const openedAtMs = nowMs - (all.length - at) * 60_000;
    const reference = typeof about === 'string' ? `held-${about}` : OF_NO_ORDER.has(kind) ? null : `order-${kind}`;
    if (reference !== null) await app.reserve(reference, `${at + 100}.50`);
    const sql = (text: string, ...values: unknown[]) => tamper(app.storePath, text, ...values);
    const orderKey = '(SELECT key FROM orders WHERE reference = ?)';
    if (reference !== null && kind !== 'link_not_opened' && kind !== 'link_withheld') {
      sql(
        `INSERT INTO ledger (order_key, payment_key, kind, occurrence, number, amount_minor, currency, at_ms)
         VALUES (${orderKey}, ?, 'captured', 1, 1, ?, 'BRL', ?)`,
        reference,
        `id:pay_${at}`,
        6000 + at,
        openedAtMs,
      );
    }
    if (typeof about === 'string') {
      sql(`UPDATE orders SET state = 'held', version = 2 WHERE reference = ?`, reference);
      sql(
        `INSERT INTO hold (order_key, id, reason, opened_at_ms) VALUES (${orderKey}, 'hold_2', ?, ?)`,
        reference,
        about,
        openedAtMs,
      );
    } else {
      const [subject, params] = about;
      sql(
        `INSERT INTO attention (kind, subject, order_key, detail, params, opened_at_ms, last_at_ms)
         VALUES (?, ?, ${orderKey}, '', ?, ?, ?)`,
        kind,
        `${subject} of ${kind}`,
        reference,
        JSON.stringify(params),
        openedAtMs,
        openedAtMs,
      );
    }
  }
  return { matters: all.length };
}
