import { randomUUID } from 'node:crypto';
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { Fault } from '../../fault.ts';
import { systemClock } from '../../work/clock.ts';
import type { Answer } from './engine.ts';
import { backUp, openReader, openWriter } from './engine.ts';
import {
  type FromThread,
  type NumberedCall,
  sendError,
  type ThreadStart,
  type ToThread,
} from './messages.ts';

/** Calls of one lane in one batch at most: it bounds the time between a call and its fsync. */
const BATCH_MAX = 256;
/** While deliveries wait, other work gets one call for so many of them. */
const INTAKE_PER_OTHER = 16;

const INTAKE: ReadonlySet<string> = new Set([
  'findCredentials',
  'recordDelivery',
  'recordHint',
  'recordRejection',
]);

const port = parentPort as MessagePort;
const start = workerData as ThreadStart;

try {
  if (start.role === 'writer') serveWriter();
  else if (start.role === 'reader') serveReader();
  else post({ closed: true, ...backUp(start.path, start.backupTo ?? '') });
} catch (error) {
  post({ failed: sendError(error) });
}

/**
 * The writer's loop. What arrives while a commit is under way forms the next batch: group commit without a timer.
 * Deliveries go first; other work fills what they leave, and never gets less than its share.
 */
function serveWriter(): void {
  const writer = openWriter({ ...start, newId: randomUUID });
  const intake: NumberedCall[] = [];
  const other: NumberedCall[] = [];
  let closing = false;
  post({ opened: { created: writer.created, instanceId: writer.instanceId } });

  function take(message: ToThread): void {
    if ('close' in message) {
      closing = true;
      return;
    }
    for (const call of message.calls) (INTAKE.has(call.verb) ? intake : other).push(call);
  }

  function nextBatch(): NumberedCall[] {
    const deliveries = intake.splice(0, BATCH_MAX);
    const share =
      deliveries.length === 0 ? BATCH_MAX : Math.max(1, Math.floor(deliveries.length / INTAKE_PER_OTHER));
    return deliveries.concat(other.splice(0, share));
  }

  port.on('message', (first: ToThread) => {
    take(first);
    for (;;) {
      for (let more = receiveMessageOnPort(port); more !== undefined; more = receiveMessageOnPort(port)) {
        take(more.message);
      }
      const batch = nextBatch();
      if (batch.length === 0) break;
      const startedMs = systemClock.monotonicMs();
      const answers = writer.run(batch);
      answer(batch, answers, (systemClock.monotonicMs() - startedMs) / 1000);
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
  post({ opened: { created: false, instanceId: '' } });
  port.on('message', (message: ToThread) => {
    if ('close' in message) {
      reader.close();
      post({ closed: true });
      port.close();
      return;
    }
    for (const call of message.calls) answer([call], [reader.run(call)], 0);
  });
}

function answer(batch: readonly NumberedCall[], answers: readonly Answer[], seconds: number): void {
  let fatal: unknown;
  post({
    seconds,
    answers: answers.map((given, index) => {
      const id = (batch[index] as NumberedCall).id;
      if (given.ok) return { id, ok: true, value: given.value };
      if (given.error instanceof Fault && given.error.kind === 'terminal') fatal = given.error;
      return { id, ok: false, error: sendError(given.error) };
    }),
  });
  if (fatal !== undefined) post({ failed: sendError(fatal) });
}

function post(message: FromThread): void {
  port.postMessage(message);
}
