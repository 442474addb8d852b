import { rmSync } from 'node:fs';

/**
 * Removes the demo's folder if the demo is killed before it can do so. It waits for the end of the demo, then for the
 * end of the processes whose ids the demo sent it.
 */

const LOOK_EVERY_MS = 50;
const WAIT_MS_MAX = 10_000;

const [, , folder = ''] = process.argv;
const writers: number[] = [];
process.on('message', (pid) => writers.push(Number(pid)));
process.once('disconnect', () => void sweep());
if (process.connected === false) void sweep();

async function sweep(): Promise<void> {
  const untilMs = Date.now() + WAIT_MS_MAX;
  while (writers.some(isAlive) && Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
  rmSync(folder, { recursive: true, force: true });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
