import type { RequestHandler } from 'express';
import type { TurnableClock } from '../clock.ts';

/** The log keeps at least this many, the latest. */
const REMEMBERED_MAX = 10_000;

/** One request to the service's API. */
export type LoggedRequest = {
  /** 1 for the first since the sandbox started. */
  number: number;
  /** When it arrived, in epoch milliseconds of the sandbox. */
  atMs: number;
  method: string;
  /** With the query. */
  path: string;
  /** Null until it is answered, and if the connection broke. */
  status: number | null;
};

export type RequestLog = {
  /** Notes a request when it arrives, and its status when it is answered. */
  note: RequestHandler;
  /** The requests after the one with this number, oldest first. */
  after(number: number): readonly LoggedRequest[];
};

/** Remembers the API's requests, in memory: a restart forgets them. */
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
