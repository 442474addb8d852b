import type { Database } from 'better-sqlite3';
import { quoteAgrees } from '../../domain/comparison.ts';
import type { Decision, SettlementPolicy } from '../../domain/decision.ts';
import type { PaymentFact } from '../../domain/fact.ts';
import type { Order } from '../../domain/order.ts';
import { decide } from '../../domain/settlement.ts';
import { DOUBTFUL_DETAIL, DOUBTFUL_FROM, isQuoteCounted, QUOTES } from '../quotes.ts';
import { attentionVerbs } from './matters.ts';

type Decider = (order: Order, fact: PaymentFact, policy: Pick<SettlementPolicy, 'asks'>, nowMs: number) => Decision;

/** Decides a fact, and counts the quotes in a row that named other money than their links. */
export function decider(db: Database): Decider {
  const read = db.prepare('SELECT quote_mismatches FROM api_state').pluck();
  const set = db.prepare('UPDATE api_state SET quote_mismatches = ?');
  const reset = db.prepare('UPDATE api_state SET quote_mismatches = 0 WHERE quote_mismatches <> 0');
  const attention = attentionVerbs(db);
  const kind = 'quote_reading_doubtful';
  return (order, fact, { asks }, nowMs) => {
    const agrees = quoteAgrees(order, fact);
    const mismatches = agrees === false ? (read.get() as number) + 1 : 0;
    const made = decide(order, fact, { asks, quoteIsDoubtful: mismatches >= DOUBTFUL_FROM });
    if (agrees === null || !isQuoteCounted(order, fact, made)) return made;
    if (agrees) {
      if (reset.run().changes === 1) attention.end(kind, QUOTES, nowMs);
      return made;
    }
    set.run(mismatches);
    if (mismatches === DOUBTFUL_FROM)
      attention.raiseForNoOrder(kind, { subject: QUOTES, detail: DOUBTFUL_DETAIL, atMs: nowMs });
    return made;
  };
}
