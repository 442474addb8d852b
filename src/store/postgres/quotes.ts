import { quoteAgrees } from '../../domain/comparison.ts';
import type { Decision, SettlementPolicy } from '../../domain/decision.ts';
import type { PaymentFact } from '../../domain/fact.ts';
import type { Order } from '../../domain/order.ts';
import { decide } from '../../domain/settlement.ts';
import { DOUBTFUL_DETAIL, DOUBTFUL_FROM, isQuoteCounted, QUOTES } from '../quotes.ts';
import { attention } from './matters.ts';
import { statement } from './statement.ts';
import type { Transaction } from './transaction.ts';

const KIND = 'quote_reading_doubtful';

// Held until the end: what two replicas hear at once is counted one after the other.
const READ = statement('SELECT quote_mismatches AS mismatches FROM api_state FOR NO KEY UPDATE');
const SET = statement('UPDATE api_state SET quote_mismatches = @mismatches');
const RESET = statement('UPDATE api_state SET quote_mismatches = 0 WHERE quote_mismatches <> 0');

/** Decides a fact, and counts the quotes in a row that named other money than their links. */
export async function decideFact(
  tx: Transaction,
  order: Order,
  fact: PaymentFact,
  { asks }: Pick<SettlementPolicy, 'asks'>,
  nowMs: number,
): Promise<Decision> {
  const agrees = quoteAgrees(order, fact);
  const mismatches = agrees === false ? (await countBefore(tx)) + 1 : 0;
  const made = decide(order, fact, { asks, quoteIsDoubtful: mismatches >= DOUBTFUL_FROM });
  if (agrees === null || !isQuoteCounted(order, fact, made)) return made;
  if (agrees) {
    tx.send(RESET);
    // It stands only while some are counted.
    attention.end(tx, KIND, QUOTES, nowMs);
    return made;
  }
  tx.send(SET, { mismatches });
  if (mismatches === DOUBTFUL_FROM)
    attention.raiseForNoOrder(tx, KIND, { subject: QUOTES, detail: DOUBTFUL_DETAIL, atMs: nowMs });
  return made;
}

async function countBefore(tx: Transaction): Promise<number> {
  return ((await tx.one(READ)) as { mismatches: number }).mismatches;
}
