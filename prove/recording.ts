import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openDisk } from './disk.ts';
import type { Mark, Session } from './workload.ts';
import type { Progress } from './world.ts';

/** What recorder.c saw of one process after another, in order. Paths begin at the recorded folder. */
export type Recording = {
  name: string;
  log: SharedArrayBuffer;
  /** A folder with what was durable before; null: nothing was there. */
  base: string | null;
  /** What `base` holds. */
  progress: Progress;
};

/** One successful call of a recorded process, or a mark that it made in between. */
export type Operation =
  | { do: 'session' }
  | { do: 'open'; file: number; path: string; created: boolean; emptied: boolean }
  | { do: 'close' | 'sync'; file: number }
  | { do: 'write'; file: number; at: number; bytes: Buffer }
  | { do: 'truncate'; file: number; length: number }
  | { do: 'unlink' | 'mkdir'; path: string }
  | { do: 'rename' | 'link'; path: string; to: string }
  | { do: 'mark'; mark: Mark };

const HEADER_BYTES = 24;
const CREATED = 1;
const EMPTIED = 2;

/** Where a recording of that name is made; the recorded folder is `folder` in it. */
export type Studio = { recorder: string; at: string; folder: string };

export function openStudio(workspace: string, recorder: string, name: string): Studio {
  const at = join(workspace, name);
  const folder = join(at, 'disk');
  mkdirSync(folder, { recursive: true });
  return { recorder, at, folder };
}

/** Runs sessions of workload.ts one after another in the studio's folder, and returns what they did to it. */
export async function record(
  { recorder, at, folder }: Studio,
  sessions: readonly Omit<Session, 'path' | 'marks'>[],
): Promise<SharedArrayBuffer> {
  const log = join(at, 'log');
  const marks = join(at, 'marks');
  const environment = { LD_PRELOAD: recorder, PROVE_FOLDER: folder, PROVE_LOG: log, PROVE_MARKS: marks };
  for (const session of sessions) {
    const whole: Session = { ...session, path: join(folder, 'data', 'settled.db'), marks };
    await runSession(whole, environment);
  }
  const bytes = new SharedArrayBuffer(statSync(log).size);
  readFileSync(log).copy(Buffer.from(bytes));
  return bytes;
}

function runSession(session: Session, environment: Record<string, string>): Promise<void> {
  const workload = fileURLToPath(new URL('workload.ts', import.meta.url));
  const child = spawn(process.execPath, [workload, JSON.stringify(session)], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (session.end === 'kill' ? signal === 'SIGKILL' : code === 0) resolve();
      else reject(new Error(`the recorded process ended with ${code ?? signal}`));
    });
  });
}

/** The operations of a recording whose process saw the recorded folder at `folder`. */
export function readLog(log: SharedArrayBuffer): Operation[] {
  const bytes = Buffer.from(log);
  const operations: Operation[] = [];
  let root = '';
  for (let at = 0; at < bytes.length; ) {
    const first = at + HEADER_BYTES;
    const second = first + bytes.readUInt32LE(at + 16);
    const end = second + bytes.readUInt32LE(at + 20);
    const header = {
      kind: bytes.readUInt32LE(at),
      file: bytes.readInt32LE(at + 4),
      number: Number(bytes.readBigInt64LE(at + 8)),
    };
    operations.push(readOperation(header, bytes.subarray(first, second), bytes.subarray(second, end)));
    at = end;
  }
  return operations;
}
