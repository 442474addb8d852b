import { EventEmitter } from 'node:events';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, type Transferable, Worker, type WorkerOptions } from 'node:worker_threads';

/**
 * Replaces `Worker` for the database threads of the apps of tests. Each app of a test starts two threads, and starting
 * one takes several times as long as the test itself. A thread is reused once it has closed its port. It compiles its file
 * once, and each use runs it anew, so that nothing is left of the previous one but what Node and better-sqlite3 keep.
 */

/** What uses leave behind ends with their thread. */
const USES_MAX = 100;

/** Runs the given file, which is CommonJS, with a port in place of the parent's. */
const THREAD = `
  const { readFileSync } = require('node:fs');
  const { compileFunction } = require('node:vm');
  const { parentPort } = require('node:worker_threads');
  let run;
  parentPort.on('message', ({ file, port, workerData }) => {
    globalThis.settledThread = { parentPort: port, workerData };
    run ??= compileFunction(readFileSync(file, 'utf8'), ['require', 'exports'], { filename: file });
    try {
      run(require, {});
    } catch (error) {
      setImmediate(() => { throw error; });
    }
    // A real thread that waits for nothing ends.
    if (port.listenerCount('message') === 0) port.close();
  });
`;

type Thread = { worker: Worker; uses: number };

const idle: Thread[] = [];

function take(): Thread {
  const used = idle.pop();
  used?.worker.removeAllListeners();
  const thread = used ?? { worker: new Worker(THREAD, { eval: true }), uses: 0 };
  thread.worker.ref();
  thread.uses++;
  return thread;
}

function giveBack(thread: Thread): void {
  thread.worker.removeAllListeners();
  // A later failure of what this use left behind must not fail another test.
  thread.worker
    .on('error', () => {})
    .once('exit', () => {
      const at = idle.indexOf(thread);
      if (at >= 0) idle.splice(at, 1);
    });
  if (thread.uses >= USES_MAX) void thread.worker.terminate();
  else {
    // Between uses it must not keep the process alive.
    thread.worker.unref();
    idle.push(thread);
  }
}

class PooledWorker extends EventEmitter {
  readonly #port: MessagePort;

  constructor(file: URL, { workerData }: WorkerOptions) {
    super();
    const thread = take();
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    let hasEnded = false;
    port1.on('message', (message) => this.emit('message', message));
    port1.once('close', () => {
      if (hasEnded) return;
      giveBack(thread);
      this.emit('exit', 0);
    });
    thread.worker.on('error', (error) => this.emit('error', error));
    thread.worker.once('exit', (code) => {
      hasEnded = true;
      port1.close();
      this.emit('exit', code);
    });
    thread.worker.postMessage({ file: fileURLToPath(file), port: port2, workerData }, [port2]);
  }

  postMessage(message: unknown, transfer: readonly Transferable[] = []): void {
    this.#port.postMessage(message, transfer);
  }
}

const isPooled = process.env.SETTLED_TEST_THREAD !== undefined;
const Exported = isPooled ? PooledWorker : Worker;

export { Exported as Worker };
