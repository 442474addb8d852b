import {
  bindingRefusal,
  ENDED_BY_ADOPTION,
  type FoundOpening,
  isAdoptable,
  notItsLink,
  type OpeningState,
  secretNote,
} from '../../domain/opening.ts';
import { isOpen } from '../../domain/order.ts';
import { type FaultNote, faultNote } from '../../domain/retry.ts';
import type { ServiceLink } from '../contract_inbox.ts';
import type { ClaimedOpening, OpeningRef, Openings } from '../contract_links.ts';
import { type InTransaction, statement, type Transaction, together, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { writeAudit } from './audit.ts';
import { checkSchedule, requestCheck } from './check_queue.ts';
import { lockOrderOfLink, lockReference, noteHistory } from './orders.ts';
import { lockSecretsKey } from './secrets.ts';

export const openingVerbs: InTransaction<Omit<Openings, 'claimOpenings' | 'openIntent' | 'closeOpening'>> = {
  *finishOpening(tx, { link, withheld, answerLost = false, webhookBase = null, webhookChangedTo, nowMs, ...opening }) {
    const [row, owner] = yield* together(findLeased(tx, opening), ownerOf(tx, link));
    if (row === null) return 'lost';
    const { orderKey, reference } = row;
    const refusal = bindingRefusal(row, link.id, owner);
    if (refusal !== null) {
      yield* park(tx, row, { fault: notItsLink(row, link.id, refusal), linkId: link.id, isForeign: false, nowMs });
      return 'taken';
    }
    yield* bind(tx, row, link, { withheld, answerLost, webhookBase, note: 'opened', by: 'reading', nowMs });
    attention.end(tx, 'link_not_opened', reference, nowMs);
    if (webhookChangedTo === null) attention.end(tx, 'webhook_address_changed', WEBHOOK_SUBJECT, nowMs);
    else if (webhookChangedTo !== undefined) {
      const params = { reference, address: webhookChangedTo };
      attention.raiseForNoOrder(tx, 'webhook_address_changed', { subject: WEBHOOK_SUBJECT, params, atMs: nowMs });
    }
    if (withheld !== null) {
      const params = { linkId: link.id, why: withheld };
      attention.raiseForOrder(tx, 'link_withheld', { subject: reference, orderKey, params, atMs: nowMs });
    }
    return 'bound';
  },
  *keepServiceSecret(tx, { linkKey, token, secret, flaw, nowMs }) {
    lockOrderOfLink(tx, linkKey);
    const row = yield* tx.one<Keeping>(FIND_SECRET, { linkKey, token });
    if (row === undefined || row.isKnown) return;
    if (secret !== null) {
      yield* lockSecretsKey(tx, secret.keyId);
      tx.send(KEEP_SECRET, { linkKey, sealed: secret.sealed, keyId: secret.keyId });
    } else {
      tx.send(KEEP_FLAW, { linkKey, flaw });
      const params = { reference: row.reference, flaw: flaw ?? '' };
      attention.raiseForNoOrder(tx, 'secret_unusable', { subject: SECRET_SUBJECT, params, atMs: nowMs });
    }
    noteHistory(tx, { orderKey: row.orderKey, atMs: nowMs, what: secretNote(flaw), by: 'reading' });
  },
  *retryOpening(tx, { dueAtMs, mayExist, waits, fault, needsId = false, nowMs, ...opening }) {
    const row = yield* findLeased(tx, opening);
    if (row === null) return;
    const { linkKey, orderKey, reference } = row;
    tx.send(RELEASE, { linkKey, dueAtMs, mayExist, needsId, ...fault });
    if (!waits) return;
    const { code, message } = fault;
    const params = { code, message, needsId };
    attention.raiseForOrder(tx, 'link_not_opened', { subject: reference, orderKey, params, atMs: nowMs });
  },
  *parkOpening(tx, { fault, foreignId, nowMs, ...opening }) {
    const row = yield* findLeased(tx, opening);
    if (row !== null) yield* park(tx, row, { fault, linkId: foreignId, isForeign: true, nowMs });
  },
  *adoptLink(tx, { reference, link, by, nowMs }) {
    lockReference(tx, reference);
    const newest = tx.one<FoundOpening>(FIND_NEWEST, { reference });
    const owner = yield* ownerOf(tx, link);
    const row = yield* newest;
    if (row === undefined) return 'not_parked';
    if (!isOpen(row.state)) return 'not_open';
    if (!isAdoptable(row)) return 'not_parked';
    if (bindingRefusal(row, link.id, owner) !== null) return 'taken';
    const { linkKey } = row;
    tx.send(FENCE, { linkKey });
    yield* bind(tx, row, link, {
      withheld: null,
      answerLost: true,
      webhookBase: null,
      note: 'adopted',
      by: 'person',
      nowMs,
    });
    requestCheck(tx, { linkKey, reason: 'registered', atMs: nowMs });
    for (const kind of ENDED_BY_ADOPTION) attention.end(tx, kind, reference, nowMs);
    yield* writeAudit(tx, by, { action: 'adopt_link', subject: reference, after: { link: link.id } }, nowMs);
    return 'adopted';
  },
};

const OPENING_ROWS = `SELECT p.link_key AS linkKey, l.order_key AS orderKey, o.reference, o.state, l.link_id AS linkId,
  p.status, p.may_exist AS mayExist FROM opening p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key`;
// Locks the opening's row as well as the order, because claims lock no order.
const FIND_LEASED = statement(`
  ${OPENING_ROWS} WHERE p.link_key = @linkKey AND p.attempt = @attempt AND p.holder = @replica AND p.status = 'leased'
  FOR NO KEY UPDATE OF p`);

/** Locks the order of an opening and reads it. Null if the caller no longer holds the lease. */
function* findLeased(tx: Transaction, { linkKey, attempt }: OpeningRef): Work<FoundOpening | null> {
  lockOrderOfLink(tx, linkKey);
  return (yield* tx.one<FoundOpening>(FIND_LEASED, { linkKey, attempt, replica: tx.replica })) ?? null;
}

/** The subjects of `secret_unusable` and `webhook_address_changed`: one matter for all links. */
const SECRET_SUBJECT = 'webhookSecret';
const WEBHOOK_SUBJECT = 'webhookUrl';

const KEEP_SECRET = statement(`
  UPDATE link SET service_sealed_secret = @sealed, service_secrets_key_id = @keyId WHERE key = @linkKey`);
const KEEP_FLAW = statement('UPDATE link SET service_secret_flaw = @flaw WHERE key = @linkKey');
const FIND_SECRET = statement(`
  SELECT o.key AS orderKey, o.reference, l.service_sealed_secret IS NOT NULL AS isKnown
  FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = @linkKey AND l.token = @token`);
type Keeping = { orderKey: number; reference: string; isKnown: boolean };

const OWNER = statement('SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.link_id = @id');

/** The reference of the order whose link has this id. */
function* ownerOf(tx: Transaction, { id }: ServiceLink): Work<string | undefined> {
  return (yield* tx.one<{ reference: string }>(OWNER, { id }))?.reference;
}

const BIND = statement(`
  UPDATE link SET link_id = @id, url = @url, short_url = @shortUrl, status = @status, withheld = @withheld,
    webhook_base = coalesce(@webhookBase::text, webhook_base), expires_at_ms = coalesce(@expiresAtMs, expires_at_ms) WHERE key = @linkKey`);
const FINISH = statement(`
  UPDATE opening SET status = 'done', holder = NULL, ended_at_ms = @nowMs, answer_lost = @answerLost, fault_code = NULL,
    fault_message = NULL WHERE link_key = @linkKey`);
// A check that waited for the opening is due now.
const CHECK_NOW = statement(`
  UPDATE link_check SET due_at_ms = @nowMs WHERE link_key = @linkKey AND due_at_ms > @nowMs`);

type Binding = {
  withheld: string | null;
  answerLost: boolean;
  webhookBase: string | null;
  note: string;
  by: 'person' | 'reading';
  nowMs: number;
};

/** Gives an order's link what the service made, and ends its opening. */
function* bind(
  tx: Transaction,
  { linkKey, orderKey }: FoundOpening,
  link: ServiceLink,
  { withheld, answerLost, webhookBase, note, by, nowMs }: Binding,
): Work<void> {
  tx.send(BIND, { ...link, withheld, webhookBase, linkKey });
  tx.send(FINISH, { nowMs, answerLost, linkKey });
  tx.send(CHECK_NOW, { nowMs, linkKey });
  noteHistory(tx, { orderKey, atMs: nowMs, what: `link ${link.id} ${note}`, by });
  yield* checkSchedule.plan(tx, linkKey, nowMs);
  attention.end(tx, 'link_not_known', link.id, nowMs);
}

// A spent budget says nothing about the opening, so an earlier fault stays.
const RELEASE = statement(`
  UPDATE opening SET status = 'pending', holder = NULL, due_at_ms = @dueAtMs, may_exist = may_exist OR @mayExist,
    fault_message = CASE WHEN @code::text = 'api_budget_spent' THEN coalesce(fault_message, @message::text)
      ELSE @message::text END,
    needs_id = CASE WHEN @code::text = 'api_budget_spent' AND fault_code IS NOT NULL THEN needs_id
      ELSE @needsId::boolean END,
    fault_code = CASE WHEN @code::text = 'api_budget_spent' THEN coalesce(fault_code, @code::text) ELSE @code::text END
  WHERE link_key = @linkKey`);

const PARK = statement(`
  UPDATE opening SET status = 'taken', holder = NULL, ended_at_ms = @nowMs, fault_code = @code, fault_message = @message,
    foreign_id = @foreignId WHERE link_key = @linkKey`);

/** `linkId`: the service's link. `isForeign`: settled did not make it, and the order may adopt it. */
type Parking = { fault: FaultNote; linkId: string | null; isForeign: boolean; nowMs: number };

/** Parks an opening for a person, because the service has another link with its reference. */
function* park(tx: Transaction, row: FoundOpening, { fault, linkId, isForeign, nowMs }: Parking): Work<void> {
  const { linkKey, orderKey, reference } = row;
  const { code, message } = fault;
  tx.send(PARK, { linkKey, nowMs, code, message, foreignId: isForeign ? linkId : null });
  // Authentic events named another link, which may be paid.
  if (row.linkId !== null) yield* checkSchedule.plan(tx, linkKey, nowMs);
  const params = { code, message, foreignId: linkId };
  attention.end(tx, 'link_not_opened', reference, nowMs);
  attention.raiseForOrder(tx, 'reference_taken', { subject: reference, orderKey, params, atMs: nowMs });
}

const FIND_NEWEST = statement(`
  ${OPENING_ROWS} WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1 FOR NO KEY UPDATE OF p`);
const FENCE = statement('UPDATE opening SET attempt = attempt + 1 WHERE link_key = @linkKey');

/** The columns of `OpeningColumns`, for an opening `p` and its link `l`. */
export const OPENING_COLUMNS = `p.status, l.withheld, p.fault_code AS faultCode, p.fault_message AS faultMessage,
  p.foreign_id AS foreignId, p.needs_id AS isIdNeeded`;

export type OpeningColumns = {
  status: OpeningState['status'];
  withheld: string | null;
  faultCode: string | null;
  faultMessage: string | null;
  foreignId: string | null;
  isIdNeeded: boolean;
};

export function openingState(row: OpeningColumns): OpeningState {
  const { status, withheld, faultMessage } = row;
  const fault = faultNote(row.faultCode, faultMessage);
  const foreignId = status === 'taken' ? (row.foreignId ?? readForeign(faultMessage ?? '')) : null;
  const needsId = fault !== null && status !== 'taken' && row.isIdNeeded;
  return { status, withheld, fault, foreignId, needsId };
}

const FOREIGN = /^The service has a link (.+) of this reference that settled did not make\.$/;

/** Reads the link's id from the message of an opening that an older version parked. Null for any other message. */
function readForeign(message: string): string | null {
  return FOREIGN.exec(message)?.[1] ?? null;
}

/** The columns of `ClaimedOpeningRow` without the attempt, for an opening `p`, its link `l` and its order `o`. */
export const CLAIMED_OPENING = `p.link_key AS linkKey, o.reference, o.amount_minor AS amountMinor, o.currency, p.request,
  l.token, l.return_token AS returnToken, l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId, l.link_id AS linkId,
  p.may_exist AS mayExist, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs`;

/** A row of an engine's claim. */
export type ClaimedOpeningRow = Omit<ClaimedOpening, 'amount'> & ClaimedOpening['amount'];

export function claimedOpening({ amountMinor, currency, ...row }: ClaimedOpeningRow): ClaimedOpening {
  return { ...row, amount: { amountMinor, currency } };
}
