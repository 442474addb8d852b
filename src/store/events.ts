import type { EventSummary } from './queries.ts';

export type EventRow = Omit<EventSummary, 'conflict' | 'fault'> & {
  /** 0 or 1 where an engine has no booleans. */
  conflict: number | boolean;
  faultCode: string | null;
  faultMessage: string | null;
};

export function eventSummary({ conflict, faultCode, faultMessage, ...row }: EventRow): EventSummary {
  const fault = faultCode === null ? null : { code: faultCode, message: faultMessage ?? '' };
  return { ...row, conflict: Boolean(conflict), fault };
}
