import { ENDED_BY } from '../../domain/matter.ts';
import {
  bindingRefusal,
  type FoundOpening,
  isAdoptable,
  notItsLink,
  type OpeningState,
  secretNote,
} from '../../domain/opening.ts';
import { isOpen, type ServiceLink } from '../../domain/order.ts';
import { type FaultNote, faultNote } from '../../domain/retry.ts';
import { statement, type Transaction, together, type Work } from '../transaction.ts';
import { attention } from './attention.ts';
import { type Author, writeAudit } from './audit.ts';
import { checkSchedule, requestCheck } from './check_queue.ts';
import { lockOrderOfLink, lockReference, noteHistory } from './orders.ts';
import { lockSecretsKey, type SealedSecret } from './secrets.ts';

export type OpeningRef = { linkKey: number; attempt: number };

/** The link that the service made for an opening. */
type MadeLink = OpeningRef & {
  link: ServiceLink;
  withheld: string | null;
  /** Whether settled missed the answer to the link's creation; false by default. */
  answerLost?: boolean;
  /** The public address in the link's webhookUrl; null or absent if it is not known. */
  webhookBase?: string | null;
  /**
   * The address to which the service says it delivers instead of ours, without the token: raises
   * `webhook_address_changed`. Null if it is ours, which ends that matter; undefined if it does not say.
   */
  webhookChangedTo?: string | null | undefined;
  nowMs: number;
};

type NamedSecret = { linkKey: number; token: string; secret: SealedSecret | null; flaw: string | null; nowMs: number };

type OpeningToRetry = OpeningRef & {
  dueAtMs: number;
  mayExist: boolean;
  waits: boolean;
  fault: FaultNote;
  /** As in `OpeningState`; false by default. */
  needsId?: boolean;
  nowMs: number;
};

/** `foreignId`: the id of the link that settled did not make, if the service names it. */
type OpeningToPark = OpeningRef & { fault: FaultNote; foreignId: string | null; nowMs: number };

/** Openings: pending → leased → done, or `taken` if the reference belongs to a link that settled did not make. */
export const openingVerbs = {
  /**
   * Records the link that the service made: its id and addresses. `withheld` says why the shop must not have it, and
   * raises attention. `taken`: another link here has that id, or this one has another; this raises attention too.
   */
  *finishOpening(tx: Transaction, made: MadeLink): Work<'bound' | 'taken' | 'lost'> {
    const { link, withheld, answerLost = false, webhookBase = null, webhookChangedTo, nowMs, ...opening } = made;
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
  /**
   * Stores the signing secret that the service named for a link in addition to ours; the first one stays. If it cannot
   * be used, `secret` is null, `flaw` says why, and `secret_unusable` is raised. Does nothing if the link is gone.
   */
  *keepServiceSecret(tx: Transaction, { linkKey, token, secret, flaw, nowMs }: NamedSecret): Work<void> {
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
  /** Returns a claimed opening to the queue. `waits` raises the attention that the order waits for a link. */
  *retryOpening(tx: Transaction, later: OpeningToRetry): Work<void> {
    const { dueAtMs, mayExist, waits, fault, needsId = false, nowMs, ...opening } = later;
    const row = yield* findLeased(tx, opening);
    if (row === null) return;
    const { linkKey, orderKey, reference } = row;
    tx.send(RELEASE, { linkKey, dueAtMs, mayExist, needsId, ...fault });
    if (!waits) return;
    const { code, message } = fault;
    const params = { code, message, needsId };
    attention.raiseForOrder(tx, 'link_not_opened', { subject: reference, orderKey, params, atMs: nowMs });
  },
  /** Parks an opening whose reference belongs to a link that settled did not make. Raises `reference_taken`. */
  *parkOpening(tx: Transaction, { fault, foreignId, nowMs, ...opening }: OpeningToPark): Work<void> {
    const row = yield* findLeased(tx, opening);
    if (row !== null) yield* park(tx, row, { fault, linkId: foreignId, isForeign: true, nowMs });
  },
  /**
   * Gives an order the link that a person named, and queues a check of it. The opening must be parked, or waiting with
   * a link possibly at the service. An attempt under way loses its lease. The link's signing secret is not ours, unless
   * such an attempt made it, so settled asks about the link. `not_open`: the order does not wait for money. `taken`:
   * another link here has that id, or this one has another.
   */
  *adoptLink(
    tx: Transaction,
    { reference, link, by, nowMs }: { reference: string; link: ServiceLink; by: Author | null; nowMs: number },
  ): Work<'adopted' | 'not_parked' | 'not_open' | 'taken'> {
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
    const binding = { withheld: null, answerLost: true, webhookBase: null, note: 'adopted', by: 'person' } as const;
    yield* bind(tx, row, link, { ...binding, nowMs });
    requestCheck(tx, { linkKey, reason: 'registered', atMs: nowMs });
    for (const kind of ENDED_BY.adoption) attention.end(tx, kind, reference, nowMs);
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
    webhook_base = coalesce(@webhookBase::text, webhook_base), expires_at_ms = coalesce(@expiresAtMs, expires_at_ms)
  WHERE key = @linkKey`);
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
  const foreignId = status === 'taken' ? row.foreignId : null;
  const needsId = fault !== null && status !== 'taken' && row.isIdNeeded;
  return { status, withheld, fault, foreignId, needsId };
}
