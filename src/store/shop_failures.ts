import { refusalSentence, type ShopFailures } from '../domain/shop_failures.ts';
import type { Matter } from './matters.ts';

/** The matter that the shop refuses notices. There is one shop, so there is one at a time. */
export const SHOP_REFUSES = { kind: 'shop_refuses_notices', subject: 'shop' } as const;

/** The row of failures in a row. Each engine reads it by these columns. */
export const FAILURES_COLUMNS = `attempts, since_ms AS sinceMs, last_at_ms AS lastAtMs, fault_code AS faultCode,
  fault_message AS faultMessage, answer_status AS answerStatus, answer_body AS answerBody`;

export type FailuresRow = Pick<ShopFailures, 'attempts' | 'sinceMs' | 'lastAtMs'> & {
  faultCode: string;
  faultMessage: string;
  answerStatus: number | null;
  answerBody: string | null;
};

export function shopFailures({
  attempts,
  sinceMs,
  lastAtMs,
  faultCode,
  faultMessage,
  answerStatus,
  answerBody,
}: FailuresRow): ShopFailures {
  return {
    attempts,
    sinceMs,
    lastAtMs,
    fault: { code: faultCode, message: faultMessage },
    answer: answerStatus === null ? null : { status: answerStatus, body: answerBody ?? '' },
  };
}

/** The matter as the last attempt leaves it. */
export function refusalMatter(row: FailuresRow, atMs: number): Matter {
  return { subject: SHOP_REFUSES.subject, detail: refusalSentence(shopFailures(row)), atMs };
}
