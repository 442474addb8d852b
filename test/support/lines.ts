import pino from 'pino';
import type { Log } from '../../src/observe/log.ts';

type Line = { level: string; msg: string } & Record<string, unknown>;

/** A log whose lines the test reads. */
export function readableLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const formatters = { level: (level: string) => ({ level }) };
  const log = pino({ base: null, formatters }, { write: (line) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}
