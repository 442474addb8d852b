import { bareFact } from '../../domain/fact.ts';
import { decide } from '../../domain/settlement.ts';
import type { Cancelled, Checks } from '../asking.ts';
import { ENDED_BY_CANCEL, type FoundOpening, openingAtCancel } from '../openings.ts';
import { statement } from '../statement.ts';
import { writeDecision } from './decisions.ts';
import { isHeard } from './intents.ts';
import { attention, noteHistory } from './matters.ts';
import { orders } from './orders.ts';
import { lockReference } from './rows.ts';
import type { InTransaction, Transaction } from './transaction.ts';

const POLICY = { asks: 'never', quoteIsDoubtful: false } as const;

/** The verb that cancels an order. See `Checks.cancelOrder` in asking.ts. */
export const cancelOrder: InTransaction<Checks>['cancelOrder'] = async (
  tx,
  { reference, atMs },
): Promise<Cancelled | null> => {
  const [, loaded] = await Promise.all([lockReference(tx, reference), orders.byReference(tx, reference)]);
  if (loaded === null) return null;
  const made = decide(loaded.order, bareFact('cancel', { by: 'person' }), POLICY);
  const { rule } = made;
  if (rule === 'cancelled' && !(await endOpening(tx, loaded.orderKey, atMs))) {
    return { outcome: 'opening', order: loaded.order };
  }
  const order = writeDecision(tx, loaded, made, { kind: 'person', id: null }, atMs);
  if (rule === 'cancelled') for (const kind of ENDED_BY_CANCEL) attention.end(tx, kind, reference, atMs);
  return { outcome: 'decided', rule, order, from: loaded.order.state };
};

type OpeningRow = Pick<FoundOpening, 'linkKey' | 'linkId' | 'status'> & { mayExist: boolean };

// Held, because claims hold no order: no attempt begins while it is decided whether there was one.
const FIND = statement(
  `SELECT p.link_key AS linkKey, l.link_id AS linkId, p.status, p.may_exist AS mayExist
   FROM opening p JOIN link l ON l.key = p.link_key WHERE l.order_key = @orderKey FOR NO KEY UPDATE OF p`,
);
const END = statement(
  `UPDATE opening SET status = 'done', holder = NULL, ended_at_ms = @atMs, fault_code = NULL, fault_message = NULL
   WHERE link_key = @linkKey`,
);

/** Ends the opening of an order that waits for its link; false where that may be there. */
async function endOpening(tx: Transaction, orderKey: number, atMs: number): Promise<boolean> {
  const opening = await tx.one<OpeningRow>(FIND, { orderKey });
  if (opening === undefined) return true;
  const { linkKey } = opening;
  const at = openingAtCancel(opening, opening.mayExist, await isHeard(tx, linkKey));
  if (at === 'ends') {
    tx.send(END, { atMs, linkKey });
    noteHistory(tx, { orderKey, atMs, what: 'link is not opened any more' });
  }
  return at !== 'waits';
}
