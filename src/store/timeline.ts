import type { CheckReason } from '../domain/check_queue.ts';
import { firstCheckAtMs } from '../domain/check_schedule.ts';
import type { OrderState } from '../domain/order.ts';
import { isMoot } from './checks.ts';
import { type OpeningColumns, openingState } from './openings.ts';
import type { HistoryRow, Timeline } from './queries.ts';

/** Rows of one kind that a timeline shows at most; the newest. */
export const TIMELINE_ROWS_MAX = 500;

export type CheckColumns = NonNullable<Timeline['check']> & { reason: CheckReason };

export function waitingCheck(check: CheckColumns | undefined, state: OrderState): Timeline['check'] {
  return check === undefined || isMoot(check.reason, state) ? null : check;
}

export type ScheduleColumns = Pick<Timeline, 'nextCheckAtMs' | 'checkFailures' | 'linkExpiresAtMs'>;

/** The link of a paid order still has the time that it had while the order was open, until that comes. */
export function scheduleSummary(link: ScheduleColumns, settledAtMs: number | null): ScheduleColumns {
  if (link.nextCheckAtMs === null) return link;
  return { ...link, nextCheckAtMs: firstCheckAtMs({ settledAtMs }, link.nextCheckAtMs) };
}

export type OpeningSummaryColumns = OpeningColumns & {
  attempt: number;
  dueAtMs: number;
  secretUnseen: boolean | 0 | 1;
};

export function openingSummary(row: OpeningSummaryColumns | undefined): Timeline['opening'] {
  if (row === undefined) return null;
  const { attempt, dueAtMs, secretUnseen, ...columns } = row;
  return { ...openingState(columns), attempt, dueAtMs, secretUnseen: Boolean(secretUnseen) };
}

export type HistoryColumns = Omit<HistoryRow, 'cause' | 'effects'> & {
  causeKind: HistoryRow['cause']['kind'];
  causeId: string | null;
  effects: string;
};

export function historyRow({ causeKind, causeId, effects, ...row }: HistoryColumns): HistoryRow {
  return { ...row, cause: { kind: causeKind, id: causeId }, effects: effects === '' ? [] : effects.split('\n') };
}
