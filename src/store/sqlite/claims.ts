import type { ClaimedEvent, Inbox } from '../contract_inbox.ts';
import type { Openings } from '../contract_links.ts';
import { type InTransaction, statement } from '../transaction.ts';
import { CLAIM_BYTES_MAX } from '../verbs/inbox.ts';
import { type ClaimedOpeningRow, claimedOpening } from '../verbs/openings.ts';

const LAPSE_EVENTS = statement(
  `UPDATE inbox SET status = 'pending', holder = NULL WHERE status = 'leased' AND due_at_ms <= @nowMs`,
);
// A row that lost its bytes is claimed as well: its signature does not fit no bytes, and it is dead-lettered.
const DUE_EVENTS = statement(
  `SELECT i.key AS eventKey, i.attempt + 1 AS attempt, i.link_key AS linkKey, coalesce(b.body, x'') AS body,
     i.timestamp, i.mac, i.received_at_ms AS receivedAtMs, i.reading
   FROM inbox i LEFT JOIN inbox_body b ON b.inbox_key = i.key
   WHERE i.status = 'pending' AND i.due_at_ms <= @nowMs ORDER BY i.due_at_ms, i.key LIMIT @limit`,
);
const LEASE_EVENT = statement(
  `UPDATE inbox SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
   WHERE key = @eventKey`,
);

/** A holder of an opening's lease that expired may have sent a request and had no answer. */
export const LAPSE_OPENINGS = `UPDATE opening SET status = 'pending', holder = NULL, may_exist = true
  WHERE status = 'leased'`;
const LAPSE_DUE_OPENINGS = statement(`${LAPSE_OPENINGS} AND due_at_ms <= @nowMs`);
const DUE_OPENINGS = statement(
  `SELECT p.link_key AS linkKey, p.attempt + 1 AS attempt, o.reference, o.amount_minor AS amountMinor, o.currency,
     p.request, l.token, l.return_token AS returnToken, l.sealed_secret AS sealedSecret, l.secrets_key_id AS keyId,
     l.link_id AS linkId, p.may_exist AS mayExist, l.created_at_ms AS createdAtMs, l.expires_at_ms AS expiresAtMs
   FROM opening p JOIN link l ON l.key = p.link_key JOIN orders o ON o.key = l.order_key
   WHERE p.status = 'pending' AND p.due_at_ms <= @nowMs ORDER BY p.attempt > 0, p.due_at_ms, p.link_key LIMIT @limit`,
);
const LEASE_OPENING = statement(
  `UPDATE opening SET status = 'leased', attempt = attempt + 1, holder = @replica, due_at_ms = @untilMs
   WHERE link_key = @linkKey`,
);

export const claimVerbs: InTransaction<Pick<Inbox, 'claimEvents'> & Pick<Openings, 'claimOpenings'>> = {
  *claimEvents(tx, { limit, nowMs, leaseMs }) {
    tx.send(LAPSE_EVENTS, { nowMs });
    const claimed: ClaimedEvent[] = [];
    let bytes = 0;
    for (const event of yield* tx.all<ClaimedEvent>(DUE_EVENTS, { nowMs, limit })) {
      if (bytes >= CLAIM_BYTES_MAX) break;
      claimed.push(event);
      bytes += event.body.length;
      tx.send(LEASE_EVENT, { eventKey: event.eventKey, untilMs: nowMs + leaseMs, replica: tx.replica });
    }
    return claimed;
  },
  *claimOpenings(tx, { limit, nowMs, leaseMs }) {
    tx.send(LAPSE_DUE_OPENINGS, { nowMs });
    const due = yield* tx.all<ClaimedOpeningRow>(DUE_OPENINGS, { nowMs, limit });
    for (const { linkKey } of due) {
      tx.send(LEASE_OPENING, { linkKey, untilMs: nowMs + leaseMs, replica: tx.replica });
    }
    return due.map(claimedOpening);
  },
};
