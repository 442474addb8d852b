import { inspect } from 'node:util';

/** Tells on stderr, with its stack, what nobody foresaw. The caller is told no more than that. */
export function tellFailure(error: unknown): void {
  process.stderr.write(`The sandbox failed at a request: ${inspect(error)}\n`);
}
