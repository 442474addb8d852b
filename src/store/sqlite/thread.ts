import { randomUUID } from 'node:crypto';
import { flushCompileCache } from 'node:module';
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import { Fault } from '../../fault.ts';
import { systemClock } from '../../work/clock.ts';
import { watchMemory } from '../../work/memory.ts';
import { backUp } from './file.ts';
import { type CallAnswer, openLanes, openReader, openWriter } from './group_commit.ts';
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

parentPort?.once('message', (start: ThreadStart) => {
  // Written now, because a killed process never writes it at its end.
  flushCompileCache();
  watchMemory(systemClock);
  serveDatabase(parentPort as MessagePort, start);
});

/** Opens the database and carries out what the port is sent, until it is told to close. */
export function serveDatabase(port: MessagePort, start: ThreadStart): void {
  try {
    if (start.role === 'writer') serveWriter(port, start);
    else if (start.role === 'reader') serveReader(port, start);
    else post(port, { closed: true, ...backUp(start.path, start.backupTo ?? '') });
  } catch (error) {
    post(port, { failed: sendError(error) });
  }
}

/** The writer's loop. Calls that arrive during a commit form the next batch: group commit without a timer. */
function serveWriter(port: MessagePort, start: ThreadStart): void {
  const writer = openWriter({ ...start, newId: randomUUID });
  const lanes = openLanes<NumberedCall>();
  let closing = false;
  let failed = false;
  post(port, { opened: writer.opened });

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
      failed = answer(port, batch, answers, (systemClock.monotonicMs() - startedMs) / 1000);
    }
    if (closing) {
      writer.close();
      post(port, { closed: true });
      port.close();
    }
  });
}

function serveReader(port: MessagePort, { path }: ThreadStart): void {
  const reader = openReader(path);
  post(port, { opened: null });
  port.on('message', (message: ToThread) => {
    if ('close' in message) {
      reader.close();
      post(port, { closed: true });
      port.close();
      return;
    }
    for (const call of received(message)) answer(port, [call], [reader.run(call)], 0);
  });
}

function received({ calls, packed }: Extract<ToThread, { calls: unknown }>): NumberedCall[] {
  unpack(recordsOfCalls(calls), packed);
  return calls;
}

/** Posts the answers. True if one of them is a fault after which this database must not be used. */
function answer(port: MessagePort, batch: NumberedCall[], given: CallAnswer[], seconds: number): boolean {
  let fatal: unknown;
  const answers = given.map((one, index): NumberedAnswer => {
    const id = (batch[index] as NumberedCall).id;
    if (one.ok) return { id, ok: true, value: one.value };
    if (one.error instanceof Fault && one.error.kind === 'terminal') fatal = one.error;
    return { id, ok: false, error: sendError(one.error) };
  });
  const changed = given.some((one, index) => batch[index]?.verb !== 'heartbeat' && (!one.ok || one.wrote));
  const packed = pack(recordsOfAnswers(answers));
  port.postMessage({ answers, packed, seconds, changed } satisfies FromThread, packed === null ? [] : [packed.bytes]);
  if (fatal !== undefined) post(port, { failed: sendError(fatal) });
  return fatal !== undefined;
}

function post(port: MessagePort, message: FromThread): void {
  port.postMessage(message);
}
