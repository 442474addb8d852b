import { type ChildProcess, spawn } from 'node:child_process';

/** A program as a process whose output is kept. */

export type Finished = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string };

export type RunningProcess = {
  child: ChildProcess;
  stdout(): string;
  finished: Promise<Finished>;
  /** Resolves with the first line of standard output that matches. */
  line(pattern: RegExp): Promise<string>;
  /** Sends a signal, and resolves when the process has ended. */
  end(signal: NodeJS.Signals): Promise<Finished>;
};

/** Starts a program found by PATH, with only PATH and the given environment. */
export function startProgram(
  command: readonly string[],
  environment: Record<string, string> = {},
  cwd?: string,
): RunningProcess {
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn(program, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  const watchers = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    for (const watcher of watchers) watcher();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const finished = new Promise<Finished>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  return {
    child,
    stdout: () => stdout,
    finished,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const watcher = () => {
          // The last line is not complete yet.
          const found = stdout
            .split('\n')
            .slice(0, -1)
            .find((line) => pattern.test(line));
          if (found === undefined) return;
          watchers.delete(watcher);
          resolve(found);
        };
        watchers.add(watcher);
        watcher();
        void finished.then((end) => reject(new Error(`ended before ${pattern}: ${JSON.stringify(end)}`)));
      }),
    end: (signal) => {
      child.kill(signal);
      return finished;
    },
  };
}
