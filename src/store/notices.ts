import { noticeName } from '../domain/notice.ts';
import type { FeedPage, NoticeDetail, NoticeSummary, ShopState } from './queries.ts';
import type { FaultNote } from './store.ts';
import type { ClaimedNotice, NoticeRef, Resent, ShopAnswer } from './telling.ts';

/** Dead notices are one matter: a shop that is gone fails all of them. */
export const DEAD = { kind: 'notices_dead', subject: 'shop' } as const;

/** What a person reads of a notice that died. */
export function deadDetail(id: string, fault: FaultNote): string {
  return (
    `The shop did not take notice ${id}: ${fault.message} See all: settled notices list --status dead. Send ` +
    'them again when the shop is well: settled notices resend --failed --yes (with --dry-run it only lists them)'
  );
}

export type ClaimedRow = Omit<ClaimedNotice, 'id'> & { random: string };

export function claimedNotice({ random, ...notice }: ClaimedRow): ClaimedNotice {
  return { ...notice, id: noticeName(notice.noticeKey, random) };
}

/** How a claimed notice ended: taken where there is no fault. */
export type Ended = NoticeRef & { fault: FaultNote | null; answer: ShopAnswer | null; nowMs: number };

/** How an attempt ended, as its row holds it. */
export function attemptColumns({ fault, answer }: Pick<Ended, 'fault' | 'answer'>) {
  return {
    code: fault?.code ?? null,
    message: fault?.message ?? null,
    answerStatus: answer?.status ?? null,
    answerBody: answer?.body ?? null,
  };
}

export type ResentRow = { status: NoticeSummary['status']; orderKey: number; dueAtMs: number | null };

/** What becomes of a notice that is to be sent again, by where it is. */
export function resending({ status, dueAtMs }: ResentRow, nowMs: number): 'in_work' | 'hasten' | 'requeue' {
  if (status === 'leased') return 'in_work';
  if (status !== 'pending') return 'requeue';
  return dueAtMs === null || dueAtMs <= nowMs ? 'in_work' : 'hasten';
}

/** @param turn the notice of its order that has its turn now */
export function resent(turn: { key: number; random: string } | undefined, nowMs: number): Resent {
  return turn === undefined
    ? { dueAtMs: nowMs, waitsFor: null }
    : { dueAtMs: null, waitsFor: noticeName(turn.key, turn.random) };
}

export type NoticeRow = Omit<NoticeSummary, 'id' | 'fault' | 'answer'> & {
  random: string;
  faultCode: string | null;
  faultMessage: string | null;
  answerStatus: number | null;
  answerBody: string | null;
};

export function noticeSummary({
  random,
  faultCode,
  faultMessage,
  answerStatus,
  answerBody,
  ...row
}: NoticeRow): NoticeSummary {
  return {
    ...row,
    id: noticeName(row.key, random),
    fault: faultCode === null ? null : { code: faultCode, message: faultMessage ?? '' },
    answer: answerStatus === null ? null : { status: answerStatus, body: answerBody ?? '' },
  };
}

export function noticeDetail({ body, ...summary }: NoticeRow & Pick<NoticeDetail, 'body'>): NoticeDetail {
  return { ...noticeSummary(summary), body };
}

export type FeedRow = { key: number; random: string; position: number; body: string };

/** The first rows whose bodies together have so many bytes at most; one at least. */
export function upToBytes(rows: Iterable<FeedRow>, bytesMax: number): FeedRow[] {
  const taken: FeedRow[] = [];
  let bytes = 0;
  for (const row of rows) {
    bytes += Buffer.byteLength(row.body);
    if (taken.length > 0 && bytes > bytesMax) break;
    taken.push(row);
  }
  return taken;
}

export function feedNotice({ key, random, position, body }: FeedRow): FeedPage['notices'][number] {
  return { position, id: noticeName(key, random), body };
}

/** What came of the last attempt to send a notice that failed. */
export function failureOf(row: NoticeRow | undefined): ShopState['failure'] {
  if (row === undefined) return null;
  const { fault, answer } = noticeSummary(row);
  return fault === null ? null : { fault, answer };
}
