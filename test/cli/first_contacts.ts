import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../../src/cli/commands.ts';
import { startTestApp, type TestApp, testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { environmentOf } from './settled.ts';

/** First contacts of settled with a service. */

export type Beside = { settled: TestApp; environment: Record<string, string> };

/** settled beside a service, and the environment of its commands. */
export async function startBeside(
  service: { url: string; apiKey: string },
  more: Record<string, string> = {},
): Promise<Beside> {
  const port = await freePort();
  const own = {
    SETTLED_API_URL: service.url,
    SETTLED_API_KEY: service.apiKey,
    SETTLED_PUBLIC_URL: `http://127.0.0.1:${port}`,
    ...more,
  };
  const settled = await startTestApp({ environment: { SETTLED_HOOKS_LISTEN: `127.0.0.1:${port}`, ...own } });
  return { settled, environment: { ...environmentOf(settled), ...own } };
}

/** `reference`: of the first order; `table`: what the command says of the service, without names that differ from run to run. */
export type Told = {
  code: number;
  text: string;
  reference: string;
  file: string;
  gaps: Record<string, string>;
  table: string;
};

/**
 * Runs the command for a person who says yes to all, at so many columns. `onLink`: called with the address of the first
 * link's page once deliveries are awaited.
 */
export async function meet(
  environment: Record<string, string>,
  args: readonly string[] = [],
  { onLink = async () => {}, columns = 80 }: { onLink?: (url: string) => Promise<unknown>; columns?: number } = {},
): Promise<Told> {
  const file = join(testFolder(), 'recording.json');
  let text = '';
  let happening: Promise<unknown> = Promise.resolve();
  const code = await run(['first-contact', '--yes', '--record', file, ...args], {
    environment,
    screen: { columns, colours: false, nowMs: Date.now },
    print: async (more) => {
      text += more;
      const url = /^Waiting.* (http\S+)/.exec(more.replaceAll('\n', ' '))?.[1];
      if (url !== undefined) happening = onLink(url);
      return true;
    },
    printError: (error) => {
      text += error;
    },
  });
  await happening;
  const { gaps } = JSON.parse(readFileSync(file, 'utf8'));
  const [, reference = ''] = /^Making order (\S+)/m.exec(text) ?? [];
  return { code, text, reference, file, gaps, table: text.slice(text.indexOf('GAP  '), text.indexOf('\nThe orders ')) };
}
