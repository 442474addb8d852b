import { type IncomingMessage, request } from 'node:http';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { OPERATOR_TOKEN, type TestApp } from './app.ts';
import { expectActivity } from './document.ts';

// biome-ignore lint/suspicious/noExplicitAny: lines have many shapes
type Line = Record<string, any>;

export type Followed = {
  /** Every line, oldest first. */
  lines: Line[];
  /** Resolves with the first line of this kind. */
  first(what: string): Promise<Line>;
  response: IncomingMessage;
  /** Resolves when the server has ended the response. */
  ended: Promise<void>;
  leave(): void;
};

/**
 * Follows `GET /v1/tail`. Resolves with the first line: everything after it is reported. At the end of the test it
 * expects every line to be documented.
 */
export async function followTail(app: TestApp, query = ''): Promise<Followed> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(`${app.apiUrl}/v1/tail${query}`, { headers, agent: false }, resolve).on('error', reject).end();
  });
  const lines: Line[] = [];
  const watchers = new Set<() => void>();
  const ended = Promise.withResolvers<void>();
  createInterface({ input: response })
    .on('line', (text) => {
      lines.push(JSON.parse(text));
      for (const watcher of watchers) watcher();
    })
    .on('close', () => ended.resolve());
  response.on('error', () => {});
  const leave = () => void response.destroy();
  onTestFinished(() => {
    leave();
    for (const line of lines) expectActivity(line);
  });
  const first = (what: string) =>
    new Promise<Line>((resolve, reject) => {
      const watcher = () => {
        const found = lines.find((line) => line.what === what);
        if (found !== undefined) resolve(found);
      };
      watchers.add(watcher);
      watcher();
      void ended.promise.then(() => reject(new Error(`it ended without ${what}: ${JSON.stringify(lines)}`)));
    });
  if (response.statusCode === 200) await first('alive');
  return { lines, first, response, ended: ended.promise, leave };
}
