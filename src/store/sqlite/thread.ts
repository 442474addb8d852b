import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Fault } from '../../fault.ts';
import { systemClock } from '../../work/clock.ts';
import { backUp } from './file.ts';
import { type CallAnswer, openReader, openWriter } from './group_commit.ts';
import { openLanes } from './lanes.ts';
import {
  type FromThread,
  type NumberedAnswer,
  type NumberedCall,
  pack,
  recordsOfAnswers,
  recordsOfCalls,
  sendError,
  type ThreadStart,
  type ToThread,
  unpack,
} from './messages.ts';

// Written now, because a killed process never writes it at its end.
flushCompileCache();

const port = parentPort as MessagePort;
const start = workerData as ThreadStart;

try {
  if (start.role === 'writer') serveWriter();
  else if (start.role === 'reader') serveReader();
  else post({ closed: true, ...backUp(start.path, start.backupTo ?? '') });
} catch (error) {
  post({ failed: sendError(error) });
}

/** The writer's loop. Calls that arrive during a commit form the next batch: group commit without a timer. */
function serveWriter(): void {
  const writer = openWriter({ ...start, newId: randomUUID });
  const lanes = openLanes<NumberedCall>();
  let closing = false;
  let failed = false;
  post({ opened: writer.opened });

  function take(message: ToThread): void {
    if ('close' in message) {
      closing = true;
      return;
    }
    for (const call of received(message)) lanes.add(call);
  }

  port.on('message', (first: ToThread) => {
    take(first);
    for (;;) {
      for (let more = receiveMessageOnPort(port); more !== undefined; more = receiveMessageOnPort(port)) {
        take(more.message);
      }
      // After a failure nothing more is written; the waiting calls were refused already.
      const batch = failed ? [] : lanes.next();
      if (batch.length === 0) break;
      const startedMs = systemClock.monotonicMs();
      const answers = writer.run(batch);
      failed = answer(batch, answers, (systemClock.monotonicMs() - startedMs) / 1000);
    }
    if (closing) {
      writer.close();
      post({ closed: true });
      port.close();
    }
  });
}

function serveReader(): void {
  const reader = openReader(start.path);
  post({ opened: null });
  port.on('message', (message: ToThread) => {
    if ('close' in message) {
      reader.close();
      post({ closed: true });
      port.close();
      return;
    }
    for (const call of received(message)) answer([call], [reader.run(call)], 0);
  });
}

function received({ calls, packed }: Extract<ToThread, { calls: unknown }>): NumberedCall[] {
  unpack(recordsOfCalls(calls), packed);
  return calls;
}

/** Posts the answers. True if one of them is a fault after which this database must not be used. */
function answer(batch: readonly NumberedCall[], given: readonly CallAnswer[], seconds: number): boolean {
  let fatal: unknown;
  const answers = given.map((one, index): NumberedAnswer => {
    const id = (batch[index] as NumberedCall).id;
    if (one.ok) return { id, ok: true, value: one.value };
    if (one.error instanceof Fault && one.error.kind === 'terminal') fatal = one.error;
    return { id, ok: false, error: sendError(one.error) };
  });
  const packed = pack(recordsOfAnswers(answers));
  port.postMessage({ answers, packed, seconds } satisfies FromThread, [packed.bytes]);
  if (fatal !== undefined) post({ failed: sendError(fatal) });
  return fatal !== undefined;
}

function post(message: FromThread): void {
  port.postMessage(message);
}
