import { Worker } from './pooled_worker.ts';

let posted = 0;

// Every call of a store is posted to its thread. Reading its metrics instead takes a hundred times as long.
const { postMessage } = Worker.prototype;
Worker.prototype.postMessage = function (this: Worker, ...message: Parameters<typeof postMessage>) {
  posted++;
  postMessage.apply(this, message);
};

/** How many messages this process has posted to threads so far. */
export function postedToThreads(): number {
  return posted;
}
