import type { RowPage } from './contract_lists.ts';
import type { DriftRow } from './contract_queries.ts';

/** What people see about the service: drift, stale deliveries, and what settled will ask it next. */
export type ServiceQueries = {
  /** Differences found between the service and settled, newest first. */
  listDrift(page: OrderPage): Promise<ListedDrift[]>;
  /** Authentic deliveries that were stale, newest first. A repeated one is counted. */
  listHints(page: OrderPage): Promise<ListedHint[]>;
  /** What settled will ask the service, as far as it is known now: at most `limit` rows of each kind. */
  nextRequests(asked: { limit: number }): Promise<NextRequests>;
};

type OrderPage = RowPage & { reference: string | null };

export type ListedDrift = DriftRow & { key: number; reference: string };

export type ListedHint = {
  key: number;
  reference: string;
  eventId: string;
  /** The characters of the timestamp header. */
  timestamp: string;
  count: number;
  firstAtMs: number;
  lastAtMs: number;
};

export type NextRequests = {
  /** Links in the queue of checks, in the order in which settled takes them once they are due. */
  queue: QueuedRequest[];
  /** Links in the schedule, the next one first. */
  schedule: { reference: string; linkId: string | null; failures: number; dueAtMs: number }[];
  /** Links that settled is opening. Those with status `taken` wait for a person. */
  openings: WaitingOpening[];
};

export type QueuedRequest = {
  reference: string;
  linkId: string | null;
  reason: string;
  rank: number;
  /** Attempts in a row that the service did not answer. */
  failures: number;
  requestedAtMs: number;
  dueAtMs: number;
};

export type WaitingOpening = {
  reference: string;
  status: 'pending' | 'leased' | 'taken';
  attempt: number;
  dueAtMs: number;
  faultCode: string | null;
  faultMessage: string | null;
};
