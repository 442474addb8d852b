import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { styleText } from 'node:util';

const LOOK_EVERY_MS = 100;
const READ_BYTES_MAX = 64 * 1024;

const STYLES = { WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const;

/**
 * Tells each line that a log gets from now on, until it is stopped. The log is a file, and never a pipe to the demo: what
 * writes it must not wait for who reads.
 */
export function followLog(path: string, tell: (lines: string[]) => void): { stop(): void } {
  const file = openSync(path, 'r');
  const decoder = new StringDecoder('utf8');
  const chunk = Buffer.alloc(READ_BYTES_MAX);
  let at = fstatSync(file).size;
  let rest = '';
  const timer = setInterval(() => {
    const bytes = readSync(file, chunk, 0, READ_BYTES_MAX, at);
    at += bytes;
    const lines = (rest + decoder.write(chunk.subarray(0, bytes))).split('\n');
    rest = lines.pop() ?? '';
    if (lines.length > 0) tell(lines.map(styled));
  }, LOOK_EVERY_MS);
  return {
    stop: () => {
      clearInterval(timer);
      closeSync(file);
    },
  };
}

/** With its level in a colour, on a terminal that has some. */
function styled(line: string): string {
  return line.replace(/^([\d:.]+ )(WARN|ERROR|FATAL)\b/, (_, time, level: keyof typeof STYLES) => {
    return time + styleText(STYLES[level], level);
  });
}
