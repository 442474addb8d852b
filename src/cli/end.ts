import type { ExitCode } from './exit.ts';

/** What may hang in a system call, on a thread: a name is looked up, a file is read or written. */
const MAY_HANG = /^(GetAddrInfo|FS)Req/;

/**
 * Ends this process. `process.exit` waits for its threads: one that looks a name up, or waits for a disk, would hold it for
 * as long as that takes. Then the process becomes another one, which ends with this code at once.
 */
export function endProcess(exit: ExitCode): never {
  // The last of those that are called then: what the others write is written.
  process.once('exit', (code) => {
    if (process.platform === 'win32' || !process.getActiveResourcesInfo().some((name) => MAY_HANG.test(name))) return;
    process.execve?.(process.execPath, [process.execPath, '--eval', `process.exit(${code})`], {});
  });
  process.exit(exit);
}
