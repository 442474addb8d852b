import type { RequestHandler, Response } from 'express';
import { sendProblem } from '../http/problem.ts';
import type { Follower, Happened } from '../observe/activity.ts';
import type { Clock } from '../work/clock.ts';
import { openSignal, type Signal } from '../work/signal.ts';
import { tailQuery } from './list_queries.ts';
import type { ApiOptions } from './options.ts';
import { read } from './requests.ts';
import { iso } from './times.ts';

/** While nothing happens, a line says that the connection stands. */
const ALIVE_EVERY_MS = 10_000;
/** What happens within this time is sent together. */
const GATHER_MS = 50;
/** A reader that takes nothing for so long is gone, or might as well be. */
const STUCK_AFTER_MS = 60_000;

/**
 * `GET /v1/tail`: what happens in this process, as it happens, a line of JSON each (NDJSON), until settled stops. A reader
 * that is too slow loses lines and is told how many: what happened for certain is in the store.
 */
export function tail({ activity, clock }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const query = read(tailQuery, request.query, response);
    if (query === null) return;
    const over = new AbortController();
    const happening = openSignal(clock);
    const follower = activity.follow({
      reference: query.reference ?? null,
      onFirst: happening.raise,
      onEnd: () => over.abort(),
    });
    if (follower === null) {
      const detail = 'As many are following as settled serves at once. End another `settled tail`.';
      sendProblem(response, { status: 503, code: 'unavailable', detail });
      return;
    }
    response.on('close', () => over.abort());
    response.setHeader('content-type', 'application/x-ndjson');
    response.setHeader('cache-control', 'no-store');
    if (request.method !== 'HEAD') await send({ follower, happening, clock, over }, response);
    follower.leave();
    // A reader that does not read would hold up the stop.
    if (response.writableNeedDrain) response.destroy();
    else response.end();
  };
}

/** `over`: aborted when the reader is gone or stuck, or settled stops. */
type Sending = { follower: Follower; happening: Signal; clock: Clock; over: AbortController };

async function send(sending: Sending, response: Response): Promise<void> {
  const { follower, clock, over } = sending;
  const drained = openSignal(clock);
  response.on('drain', drained.raise);
  let text = markLine(clock, 'alive');
  while (!over.signal.aborted) {
    if (!response.write(text)) await drained.next(STUCK_AFTER_MS, over.signal);
    if (response.writableNeedDrain) over.abort();
    text = await next(sending);
  }
  if (follower.ended && !response.writableNeedDrain) {
    response.write(text + lines(clock, follower.take()) + markLine(clock, 'stopping'));
  }
}

/** What there is to say next; nothing where it is over. */
async function next({ follower, happening, clock, over }: Sending): Promise<string> {
  const waiting = lines(clock, follower.take());
  if (waiting !== '') return waiting;
  await happening.next(ALIVE_EVERY_MS, over.signal);
  if (over.signal.aborted) return '';
  await new Promise<void>((resolve) => clock.after(GATHER_MS, resolve));
  return lines(clock, follower.take()) || markLine(clock, 'alive');
}

function lines(clock: Clock, { happened, lost }: { happened: Happened[]; lost: number }): string {
  const text = happened.map((one) => `${JSON.stringify(one)}\n`).join('');
  return lost === 0 ? text : text + markLine(clock, 'lost', { count: lost });
}

/** A line about the tail itself. */
function markLine(clock: Clock, what: 'alive' | 'lost' | 'stopping', more: object = {}): string {
  const at = iso(clock.nowMs());
  return `${JSON.stringify({ at, reference: null, what, ...more })}\n`;
}
