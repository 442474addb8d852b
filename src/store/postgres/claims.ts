import type { ClaimedEvent, Inbox } from '../contract_inbox.ts';
import type { Openings } from '../contract_links.ts';
import { type InTransaction, statement } from '../transaction.ts';
import { CLAIM_BYTES_MAX } from '../verbs/inbox.ts';
import { type ClaimedOpeningRow, claimedOpening } from '../verbs/openings.ts';

// Who is in the middle of settling a row holds it: its lease lapses when he is done, or gone.
const LAPSE_EVENTS = statement(
  `UPDATE inbox SET status = 'pending', holder = NULL WHERE key IN (
     SELECT key FROM inbox WHERE status = 'leased' AND due_at_ms <= @nowMs FOR NO KEY UPDATE SKIP LOCKED)`,
);
// A row that lost its bytes is claimed as well: its signature does not fit no bytes, and it is dead-lettered.
const CLAIM_EVENTS = statement(
  `WITH due AS MATERIALIZED (
     SELECT key, due_at_ms FROM inbox WHERE status = 'pending' AND due_at_ms <= @nowMs
     ORDER BY due_at_ms, key LIMIT @limit FOR NO KEY UPDATE SKIP LOCKED
   ), given AS (
     SELECT d.key, d.due_at_ms, coalesce(b.body, '') AS body,
       sum(coalesce(length(b.body), 0)) OVER (ORDER BY d.due_at_ms, d.key ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW)
         AS bytes_before
     FROM due d LEFT JOIN inbox_body b ON b.inbox_key = d.key
   ), claimed AS (
     UPDATE inbox i SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
     FROM given g WHERE i.key = g.key AND coalesce(g.bytes_before, 0) < ${CLAIM_BYTES_MAX}
     RETURNING i.key, i.attempt, i.link_key, g.body, i.timestamp, i.mac, i.received_at_ms, i.reading,
       g.due_at_ms AS was_due_at_ms
   )
   SELECT key AS eventKey, attempt, link_key AS linkKey, body, timestamp, mac, received_at_ms AS receivedAtMs, reading
   FROM claimed ORDER BY was_due_at_ms, key`,
);

// Who is writing the end of an attempt holds its row: the lease lapses when he is done, or gone.
const LAPSE_OPENINGS = statement(
  `UPDATE opening SET status = 'pending', holder = NULL, may_exist = true
   WHERE link_key IN (SELECT link_key FROM opening WHERE status = 'leased' AND due_at_ms <= @nowMs
     FOR NO KEY UPDATE SKIP LOCKED)`,
);
const CLAIM_OPENINGS = statement(
  `WITH due AS MATERIALIZED (
     SELECT link_key, attempt > 0 AS was_tried, due_at_ms FROM opening
     WHERE status = 'pending' AND due_at_ms <= @nowMs ORDER BY attempt > 0, due_at_ms, link_key LIMIT @limit
     FOR NO KEY UPDATE SKIP LOCKED
   ), claimed AS (
     UPDATE opening p SET status = 'leased', holder = @replica, attempt = p.attempt + 1, due_at_ms = @untilMs
     FROM due WHERE p.link_key = due.link_key
     RETURNING p.link_key, p.attempt, p.request, p.may_exist, due.was_tried, due.due_at_ms
   )
   SELECT p.link_key AS linkKey, p.attempt, o.reference, o.amount_minor AS amountMinor, o.currency, p.request, l.token,
     l.return_token AS returnToken, l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId, l.link_id AS linkId,
     p.may_exist AS mayExist, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs
   FROM claimed p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key
   ORDER BY p.was_tried, p.due_at_ms, p.link_key`,
);

export const claimVerbs: InTransaction<Pick<Inbox, 'claimEvents'> & Pick<Openings, 'claimOpenings'>> = {
  *claimEvents(tx, { limit, nowMs, leaseMs }) {
    tx.send(LAPSE_EVENTS, { nowMs });
    const lease = { limit, nowMs, untilMs: nowMs + leaseMs, replica: tx.replica };
    return yield* tx.all<ClaimedEvent>(CLAIM_EVENTS, lease);
  },
  *claimOpenings(tx, { limit, nowMs, leaseMs }) {
    tx.send(LAPSE_OPENINGS, { nowMs });
    const claim = { replica: tx.replica, limit, nowMs, untilMs: nowMs + leaseMs };
    return (yield* tx.all<ClaimedOpeningRow>(CLAIM_OPENINGS, claim)).map(claimedOpening);
  },
};
