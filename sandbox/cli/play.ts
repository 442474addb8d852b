import { SCENARIOS } from '../scenarios.ts';
import { UnknownName } from '../silences.ts';
import { type Call, defineCommand, type Options } from './command.ts';
import { EXIT, UsageError } from './exit.ts';
import { type Course, type PlayedDelivery, playScenario, type Receiver } from './player.ts';
import { table } from './table.ts';
import { answerOf, type Finding, judge } from './verdict.ts';

const RESPONSE_LENGTH_MAX = 60;

const OPTIONS = {
  'webhook-url': { value: 'URL', about: 'the receiver; needed' },
  'webhook-secret': { value: 'SECRET', about: 'what the deliveries are signed with; needed' },
  reference: { value: 'TEXT', about: 'externalReference of the link; default play-SCENARIO' },
  amount: { value: 'N', about: 'amount of the link, above 25; default 100' },
  seed: { value: 'TEXT', about: 'the seed of ids; default: one from the scenario and the reference' },
  set: { value: 'NAME=VALUE', isRepeatable: true, about: 'a switch for what the specification leaves open' },
} as const satisfies Options;

export const play = defineCommand({
  name: 'play',
  positional: 'SCENARIO',
  about: 'play a scenario against a receiver, and judge what it did',
  details: ['Scenarios:', ...Object.entries(SCENARIOS).map(([name, { about }]) => `  ${name}: ${about}`)],
  options: OPTIONS,
  run: async ({ first, options }) => {
    const scenario = Object.hasOwn(SCENARIOS, first) ? SCENARIOS[first] : undefined;
    if (scenario === undefined) throw new UnknownName('scenario', first, Object.keys(SCENARIOS));
    const receiver = readReceiver(first, options);
    const { seed = null, set = [] } = options;
    const course = await playScenario(scenario, receiver, { name: first, seed, set });
    const findings = judge(course, scenario.verdict);
    const isPassed = findings.every(({ holds }) => holds);
    return {
      data: { scenario: first, passed: isPassed, verdict: findings, ...course },
      lines: [
        `${first}: ${scenario.about}`,
        '',
        ...courseTable(course),
        '',
        ...findings.map(findingLine),
        '',
        isPassed ? 'PASSED' : 'FAILED',
      ],
      exit: isPassed ? EXIT.ok : EXIT.refused,
    };
  },
});

function readReceiver(scenario: string, options: Call<typeof OPTIONS>['options']): Receiver {
  const { 'webhook-url': webhookUrl, 'webhook-secret': webhookSecret, amount = '100' } = options;
  if (webhookUrl === undefined || webhookSecret === undefined || webhookSecret === '') {
    throw new UsageError('play needs a receiver: --webhook-url URL --webhook-secret SECRET');
  }
  if (!/^https?:$/.test(URL.parse(webhookUrl)?.protocol ?? '')) {
    throw new UsageError(`--webhook-url is "${webhookUrl}". Write an http or https address.`);
  }
  if (!/^\d{1,12}(\.\d{1,2})?$/.test(amount) || !(Number(amount) > 25)) {
    throw new UsageError(`--amount is "${amount}". Write a number above 25, such as 100 or 149.90.`);
  }
  const reference = options.reference ?? `play-${scenario}`;
  return { webhookUrl, webhookSecret, reference, amount: Number(amount) };
}

type Row = { at: string; what: string; mischief: string; response: string };

/** Requests of the API and attempts of deliveries, in the order of their times; repetitions are one row. */
function courseTable({ attempts, deliveries, api }: Course): string[] {
  const titles = new Map(deliveries.map((delivery) => [delivery.id, titleOf(delivery)]));
  const rows: Row[] = [
    ...api.map(({ at, request, status }) => ({ at, what: request, mischief: '', response: String(status) })),
    ...attempts.map((attempt) => ({
      at: attempt.at,
      what: `${titles.get(attempt.delivery)}, attempt ${attempt.attempt}`,
      mischief: attempt.faults.join(', '),
      response: `${answerOf(attempt)} ${attempt.responseBody ?? ''}`.slice(0, RESPONSE_LENGTH_MAX),
    })),
  ].sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0));
  const runs: { row: Row; times: number }[] = [];
  for (const row of rows) {
    const last = runs.at(-1);
    if (last !== undefined && isRepeated(last.row, row)) last.times++;
    else runs.push({ row, times: 1 });
  }
  return table(
    ['time', 'event', 'mischief', 'response'],
    runs.map(({ row, times }) => [
      row.at,
      times === 1 ? row.what : `${row.what}, ${times} times`,
      row.mischief,
      row.response,
    ]),
    'Nothing happened.',
  );
}

/** The event's kind in short, with the payment status that it tells. */
function titleOf({ kind, origin, body }: PlayedDelivery): string {
  const [, status = ''] = /"paymentStatus":"(\w+)"/.exec(body) ?? [];
  const words = [kind.replace('payment_link.', ''), status, origin === 'resend' ? 'again' : ''];
  return words.filter((word) => word !== '').join(' ');
}

function isRepeated(one: Row, other: Row): boolean {
  return one.what === other.what && one.mischief === other.mischief && one.response === other.response;
}

function findingLine({ says, holds, why }: Finding): string {
  return holds ? `  yes  ${says}` : `  NO   ${says}: ${why}`;
}
