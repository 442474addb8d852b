import type { RequestHandler } from 'express';
import type { TurnableClock } from '../clock.ts';

/** So many are remembered, the latest. */
const REMEMBERED_MAX = 10_000;

/** One request to the service's API. */
export type LoggedRequest = {
  /** 1 for the first since the sandbox started. */
  number: number;
  /** When it came, epoch milliseconds of the sandbox. */
  atMs: number;
  method: string;
  /** With its query. */
  path: string;
  /** What it was answered; null while it is not, and where the connection broke. */
  status: number | null;
};

export type RequestLog = {
  /** Notes a request when it comes, and its status when it is answered. */
  note: RequestHandler;
  /** Those after the one of this number, oldest first. */
  after(number: number): readonly LoggedRequest[];
};

/** Remembers what was asked of the API, as the service sees it. In memory: a restart forgets it. */
export function openRequestLog(clock: Pick<TurnableClock, 'nowMs'>): RequestLog {
  let requests: LoggedRequest[] = [];
  let count = 0;
  return {
    note: (request, response, next) => {
      const { method, originalUrl: path } = request;
      const logged: LoggedRequest = { number: ++count, atMs: clock.nowMs(), method, path, status: null };
      requests.push(logged);
      if (requests.length >= 2 * REMEMBERED_MAX) requests = requests.slice(-REMEMBERED_MAX);
      response.once('finish', () => {
        logged.status = response.statusCode;
      });
      next();
    },
    after: (number) => requests.filter((logged) => logged.number > number),
  };
}
