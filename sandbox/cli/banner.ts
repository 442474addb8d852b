import { durationText } from '../control/duration.ts';
import type { SandboxOptions } from '../options.ts';
import type { Sandbox } from '../sandbox.ts';
import { DEFAULT_SILENCES, type Silences } from '../silences.ts';
import { DEFAULT_URL } from './control.ts';
import { record } from './table.ts';

export const NOTICE = 'No money here is real.';

/** What `serve` says when it is there. `plans` is how many fault plans are not spent. */
export function banner(sandbox: Sandbox, options: SandboxOptions, plans: number): string[] {
  const { url, apiKey, seed } = sandbox;
  return [
    '',
    `  SANDBOX. ${NOTICE.toUpperCase()} Nothing is charged, nobody is paid.`,
    '',
    ...record([
      ['API', `${url}/api/v1`],
      ['API key', apiKey],
      ['environment', environmentText(options)],
      ['page and panel', `${url}/pay/LINK`],
      ['control', `${url}/_control`],
      ['data', options.data ?? 'in memory, gone when it stops; keep it with --data FILE'],
      ['seed', seed],
      ['clock', clockText(sandbox, options)],
      ...unusual(options, plans),
    ]),
    '',
    ...howToGoOn(sandbox, options),
    '',
  ];
}

function environmentText({ environment }: SandboxOptions): string {
  return environment === 'production'
    ? '`production`: links can be paid, and events are delivered by themselves'
    : '`sandbox`: payments are disabled, and events go out from the panel only';
}

function clockText({ aheadMs, clock }: Sandbox, { timeScale }: SandboxOptions): string {
  const now = new Date(clock.nowMs()).toISOString();
  const isTurned = aheadMs > 1_000;
  const time = isTurned ? `turned ${durationText(aheadMs)} ahead of the true time: ${now}` : 'the true time';
  return timeScale === 1 ? time : `${time}, and from there ${timeScale} times as fast`;
}

/** What was chosen otherwise than by default, and changes how the sandbox answers. */
function unusual({ silences, merchantInactive, rateLimit }: SandboxOptions, plans: number) {
  const names = Object.keys(DEFAULT_SILENCES) as (keyof Silences)[];
  const changed = names.filter((name) => silences[name] !== DEFAULT_SILENCES[name]);
  const rows: [string, string][] = [];
  if (changed.length > 0) rows.push(['switches', changed.map((name) => `${name}=${silences[name]}`).join(', ')]);
  if (plans > 0) rows.push(['fault plans', `${plans}: see them with the command faults`]);
  if (merchantInactive) rows.push(['merchant', 'inactive: every call of the API is answered 403']);
  if (rateLimit === null) rows.push(['rate limit', 'none']);
  return rows;
}

function howToGoOn({ url, apiKey }: Sandbox, { environment }: SandboxOptions): string[] {
  // In a checkout the command is npm's, which names its script in the environment.
  const command = process.env.npm_lifecycle_event === undefined ? 'settled sandbox' : 'npm run -s sandbox --';
  const other = url === DEFAULT_URL ? '' : ` --url ${url}`;
  const creation = [
    `    curl -s ${url}/api/v1/payment-links -H 'x-api-key: ${apiKey}' -H 'Content-Type: application/json' \\`,
    `      -d '{"title": "Test", "amount": 100, "externalReference": "order-1"}'; echo`,
  ];
  const ways =
    environment === 'production'
      ? [
          '  Create a link, and pay it. This one has no "webhookUrl": add the address of a receiver, which is then told.',
          ...creation,
          `    ${command} pay order-1${other}`,
        ]
      : [
          '  Create a link, and open the "url" of the answer in a browser: the panel there simulates events. This link has',
          '  no "webhookUrl": add the address of a receiver, which is then told.',
          ...creation,
        ];
  return [...ways, `  More: ${command} help, and sandbox/README.md. Stop with Ctrl+C.`];
}
