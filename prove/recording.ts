import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProgram } from './harness/program.ts';
import type { Progress } from './test_data.ts';
import type { Mark, Session } from './workload.ts';

/** The calls that recorder.c saw of one process after another. Paths begin at the recorded folder. */
export type Recording = {
  name: string;
  /** The recorded folder, as the last process left it. */
  folder: string;
  log: SharedArrayBuffer;
  /** A folder with what was durable before; null if there was nothing. */
  base: string | null;
  /** The content of `base`. */
  progress: Progress;
};

/** One successful call of a recorded process, or a mark that it wrote between calls. */
export type Operation =
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

export type Sessions = readonly Omit<Session, 'path' | 'marks'>[];

/** Runs sessions of workload.ts one after another on this folder, and returns the log of their calls, made beside it. */
export async function record(recorder: string, folder: string, sessions: Sessions): Promise<SharedArrayBuffer> {
  const [log, marks] = [`${folder}.log`, `${folder}.marks`];
  const environment = { LD_PRELOAD: recorder, PROVE_FOLDER: folder, PROVE_LOG: log, PROVE_MARKS: marks };
  for (const session of sessions) {
    const whole: Session = { ...session, path: join(folder, 'data', 'settled.db'), marks };
    await runSession(whole, environment);
  }
  const bytes = new SharedArrayBuffer(statSync(log).size);
  readFileSync(log).copy(Buffer.from(bytes));
  return bytes;
}

async function runSession(session: Session, environment: Record<string, string>): Promise<void> {
  const workload = fileURLToPath(new URL('workload.ts', import.meta.url));
  const { code, signal, stderr } = await startProgram(
    [process.execPath, workload, JSON.stringify(session)],
    environment,
  ).finished;
  if (session.end === 'kill' ? signal === 'SIGKILL' : code === 0) return;
  throw new Error(`the recorded process ended with ${code ?? signal}: ${stderr}`);
}

/** The operations of a log. Their bytes are views of it, not copies. */
export function readLog(log: SharedArrayBuffer): Operation[] {
  const bytes = Buffer.from(log);
  const operations: Operation[] = [];
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

type Header = { kind: number; file: number; number: number };

/** The kinds are numbered as in recorder.c. */
function readOperation({ kind, file, number }: Header, first: Buffer, second: Buffer): Operation {
  const path = kind === 3 ? '' : first.toString();
  switch (kind) {
    case 1:
      return { do: 'open', file, path, created: (number & CREATED) !== 0, emptied: (number & EMPTIED) !== 0 };
    case 2:
      return { do: 'close', file };
    case 3:
      return { do: 'write', file, at: number, bytes: first };
    case 4:
      return { do: 'truncate', file, length: number };
    case 5:
      return { do: 'sync', file };
    case 6:
      return { do: 'unlink', path };
    case 7:
      return { do: 'rename', path, to: second.toString() };
    case 8:
      return { do: 'link', path, to: second.toString() };
    case 9:
      return { do: 'mkdir', path };
    case 10:
      return { do: 'mark', mark: JSON.parse(path) as Mark };
    default:
      throw new Error(`the log is not one of recorder.c: kind ${kind}`);
  }
}
