import type { Database } from 'better-sqlite3';
import { bareFact } from '../../domain/fact.ts';
import { decide } from '../../domain/settlement.ts';
import type { Cancelled, Checks } from '../asking.ts';
import { ENDED_BY_CANCEL, type FoundOpening, openingAtCancel } from '../openings.ts';
import { decisionWriter } from './decisions.ts';
import { linkHeard } from './intents.ts';
import { attentionVerbs, historyNotes } from './matters.ts';
import { orderLoader } from './orders.ts';
import type { Synchronous } from './synchronous.ts';

/** The verb that cancels an order. See `Checks.cancelOrder` in asking.ts. */
export function canceller(db: Database, newId: () => string): Synchronous<Checks>['cancelOrder'] {
  const orders = orderLoader(db);
  const write = decisionWriter(db, newId);
  const endOpening = openingEnder(db);
  const attention = attentionVerbs(db);
  const policy = { asks: 'never', quoteIsDoubtful: false } as const;
  return ({ reference, atMs }): Cancelled | null => {
    const loaded = orders.byReference(reference);
    if (loaded === null) return null;
    const made = decide(loaded.order, bareFact('cancel', { by: 'person' }), policy);
    const { rule } = made;
    if (rule === 'cancelled' && !endOpening(loaded.orderKey, atMs)) {
      return { outcome: 'opening', order: loaded.order };
    }
    const order = write(loaded, made, { kind: 'person', id: null }, atMs);
    if (rule === 'cancelled') for (const kind of ENDED_BY_CANCEL) attention.end(kind, reference, atMs);
    return { outcome: 'decided', rule, order, from: loaded.order.state };
  };
}

type OpeningRow = Pick<FoundOpening, 'linkKey' | 'linkId' | 'status'> & { mayExist: 0 | 1 };

/** Ends the opening of an order that waits for its link; false where that may be there. */
function openingEnder(db: Database): (orderKey: number, atMs: number) => boolean {
  const find = db.prepare(
    `SELECT p.link_key AS linkKey, l.link_id AS linkId, p.status, p.may_exist AS mayExist
     FROM opening p JOIN link l ON l.key = p.link_key WHERE l.order_key = ?`,
  );
  const end = db.prepare(
    `UPDATE opening SET status = 'done', ended_at_ms = ?, fault_code = NULL, fault_message = NULL WHERE link_key = ?`,
  );
  const isHeard = linkHeard(db);
  const note = historyNotes(db);
  return (orderKey, atMs) => {
    const opening = find.get(orderKey) as OpeningRow | undefined;
    if (opening === undefined) return true;
    const { linkKey } = opening;
    const at = openingAtCancel(opening, opening.mayExist === 1, isHeard(linkKey));
    if (at === 'ends') {
      end.run(atMs, linkKey);
      note(orderKey, atMs, 'link is not opened any more');
    }
    return at !== 'waits';
  };
}
