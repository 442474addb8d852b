import { randomBytes } from 'node:crypto';
import type { Given, Options } from '../../src/terminal/command.ts';
import { UsageError } from '../../src/terminal/failure.ts';
import type { Block } from '../../src/terminal/output.ts';
import { table } from '../../src/terminal/table.ts';
import { SCENARIOS, type Scenario } from '../scenarios.ts';
import { defineCommand, HEADER_PREFIX_OPTION, readHeaderPrefix } from './client.ts';
import { answerText, titleOf } from './deliveries.ts';
import { EXIT } from './exit.ts';
import { answerOf, type Course, type Finding, judge, playScenario, type Receiver } from './scenario.ts';
import { readSwitchOptions } from './switches.ts';

const OPTIONS = {
  'webhook-url': { value: 'URL', needed: true, about: 'the receiver' },
  'webhook-secret': {
    value: 'SECRET',
    about: 'the secret that signs the deliveries, also from SETTLED_SANDBOX_WEBHOOK_SECRET; required',
  },
  reference: { value: 'TEXT', about: 'externalReference of the link; default play-SCENARIO' },
  amount: { value: 'N', about: 'amount of the link, above 25; default 100' },
  seed: { value: 'TEXT', about: 'the ids follow from it; default: a new one for each run, which is printed' },
  'header-prefix': HEADER_PREFIX_OPTION,
  set: { value: 'NAME=VALUE', isRepeatable: true, about: 'a switch for what the specification leaves open' },
} as const satisfies Options;

export const play = defineCommand({
  usage: 'play SCENARIO',
  about: 'play a scenario against a receiver, and judge what it did',
  details: [
    'Scenarios:',
    ...Object.entries(SCENARIOS).map(([name, { about }]) => `  ${name}: ${about}.`),
    '',
    'Use a new order for each run: a second run would pay the same order by another link. The verdict judges the answers',
    'only: look at the order at the receiver.',
  ],
  options: OPTIONS,
  isLocal: true,
  choices: Object.keys(SCENARIOS),
  run: async ({ first, options }) => {
    const scenario = SCENARIOS[first] as Scenario;
    const receiver = readReceiver(first, options);
    const { seed = randomBytes(8).toString('hex'), set = [] } = options;
    const switches = readSwitchOptions('--set', [...scenario.switches, ...set]);
    const headerPrefix = readHeaderPrefix(options['header-prefix']);
    const course = await playScenario(scenario, receiver, { seed, switches, headerPrefix });
    const findings = judge(course, scenario.verdict);
    const isPassed = findings.every(({ holds }) => holds);
    return {
      data: { scenario: first, seed, passed: isPassed, verdict: findings, ...course },
      lines: [
        `${first}: ${scenario.about}`,
        '',
        ...courseTable(course),
        '',
        ...findings.map(findingLine),
        ...secretNote(course),
        '',
        isPassed ? 'PASSED' : 'FAILED',
        `This judges the answers only. Look at the order "${receiver.reference}" at the receiver.`,
        `The same ids again: --seed ${seed}`,
      ],
      exit: isPassed ? EXIT.ok : EXIT.refused,
    };
  },
});

function readReceiver(scenario: string, options: Given<typeof OPTIONS>): Receiver {
  const { 'webhook-url': webhookUrl, amount = '100' } = options;
  const webhookSecret = options['webhook-secret'] ?? process.env.SETTLED_SANDBOX_WEBHOOK_SECRET ?? '';
  if (webhookSecret === '') throw new UsageError('play needs the secret of the receiver: --webhook-secret SECRET.');
  if (!/^https?:$/.test(URL.parse(webhookUrl)?.protocol ?? '')) {
    throw new UsageError(`--webhook-url is "${webhookUrl}". Write an http or https address.`);
  }
  if (!/^\d{1,12}(\.\d{1,2})?$/.test(amount) || !(Number(amount) > 25)) {
    throw new UsageError(`--amount is "${amount}". Write a number above 25, such as 100 or 149.90.`);
  }
  const reference = options.reference ?? `play-${scenario}`;
  return { webhookUrl, webhookSecret, reference, amount: Number(amount) };
}

type Row = { at: string; what: string; faults: string; response: string };

/** Requests of the API and attempts of deliveries, in the order of their times; repetitions are one row. */
function courseTable({ attempts, deliveries, api }: Course): Block[] {
  const titles = new Map(
    deliveries.map((delivery) => {
      const again = delivery.origin === 'resend' ? ' again' : '';
      return [delivery.id, titleOf(delivery) + again];
    }),
  );
  const rows: Row[] = [
    ...api.map(({ at, request, status }) => ({ at, what: request, faults: '', response: String(status) })),
    ...attempts.map((attempt) => ({
      at: attempt.at,
      what: `${titles.get(attempt.delivery)}, attempt ${attempt.attempt}`,
      faults: attempt.faults.join(', '),
      response:
        attempt.responseStatus === null
          ? answerOf(attempt)
          : answerText(attempt.responseStatus, attempt.responseBody ?? ''),
    })),
  ].sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
  const runs: { row: Row; times: number }[] = [];
  for (const row of rows) {
    const last = runs.at(-1);
    if (last !== undefined && isRepeated(last.row, row)) last.times++;
    else runs.push({ row, times: 1 });
  }
  const played = runs.map(({ row, times }) => ({
    ...row,
    what: times === 1 ? row.what : `${row.what}, ${times} times`,
  }));
  const columns = { 'sandbox time': 'at', event: 'what', faults: 'faults', response: 'response' } as const;
  return table(played, columns, { nothing: 'Nothing happened.' });
}

function isRepeated(one: Row, other: Row): boolean {
  return one.what === other.what && one.faults === other.faults && one.response === other.response;
}

/** If every correctly signed delivery is answered 401, the secret is probably not the receiver's. */
function secretNote({ attempts }: Course): string[] {
  const unharmed = attempts.filter(({ faults }) => faults.length === 0);
  if (unharmed.length === 0 || unharmed.some(({ responseStatus }) => responseStatus !== 401)) return [];
  return ['', 'Every delivery was answered 401: is --webhook-secret the one that the receiver has for this address?'];
}

function findingLine({ says, holds, why }: Finding): string {
  return holds ? `  yes  ${says}` : `  NO   ${says}: ${why}`;
}
