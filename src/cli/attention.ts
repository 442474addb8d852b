import type { TestedChannel } from '../api/alerts.ts';
import type { GroupDocument, MatterDocument } from '../api/attention.ts';
import { MATTER_KINDS } from '../domain/matter.ts';
import { amountIn } from '../domain/money.ts';
import { ORDER_STATES } from '../domain/order.ts';
import type { Block } from '../terminal/output.ts';
import { type Columns, table } from '../terminal/table.ts';
import { defineCommand } from './command.ts';
import { CommandError, EXIT } from './exit.ts';
import { capturedWords, listRows, moreLine, PAGE_OPTIONS } from './lists.ts';

/** The commands about attention. */

type Page = { summary: { sentence: string }; groups: GroupDocument[] };

/** How many matters are listed below the kinds of all, unless a kind or another number is given. */
const FIRST = '10';

export const attention = defineCommand({
  usage: 'attention',
  about: 'list what needs attention, money first',
  details: [
    'Held orders, refunds that are due and all other matters are one list. Each says what happened and what to do.',
    `Below the kinds, of which each is counted, it lists the first ${FIRST}; --kind, --limit or --all list more.`,
    'Many matters end without you; docs/states.md says which, and when.',
    'A hold ends when you decide it: settled orders resolve ORDER.',
    'End the others when they are over: settled attention end ID --reason TEXT.',
    'A refund or a dispute that the service made is not a matter: settled orders list --state disputed.',
    '--exit-code is for cron and scripts: the command then ends with 3 if something needs attention.',
  ],
  examples: ['settled attention --kind hold', 'settled attention --exit-code'],
  options: {
    kind: { value: 'KIND', choices: MATTER_KINDS, about: 'only matters of this kind' },
    state: { value: 'STATE', choices: ORDER_STATES, about: 'only matters of orders in this state' },
    'exit-code': { about: 'end with 3 if something needs attention' },
    limit: { ...PAGE_OPTIONS.limit, about: `list at most N (${FIRST}; of one kind 50)` },
    all: { about: 'list all' },
  },
  async run({ options, server }) {
    const { kind, state, all, limit = kind === undefined ? FIRST : undefined } = options;
    const listed = await listRows<MatterDocument>(server(), 'attention', { kind, state }, { all, limit });
    const { rows, more, page } = listed;
    const { summary, groups } = page as Page;
    const exit = options['exit-code'] === true && groups.length > 0 ? EXIT.needsPerson : EXIT.ok;
    const lines = [
      summary.sentence,
      ...(groups.length === 0 ? [] : ['', ...groupLines(groups)]),
      ...(rows.length === 0 ? [] : ['', ...table(rows, MATTER_COLUMNS)]),
      ...moreLine(more),
    ];
    return { data: { summary, groups, attention: rows, more }, lines, exit };
  },
});

const PATH = '/v1/attention';

function groupLines(groups: readonly GroupDocument[]): Block[] {
  const isReported = ({ reported }: { reported: string }) => Number(reported) !== 0;
  const claims = groups.filter(({ sums }) => sums.some(isReported));
  const columns: Columns<GroupDocument> = {
    kind: kindWords,
    count: 'count',
    'oldest since': 'oldestAt',
    asked: ({ sums }) =>
      written(
        sums.filter(({ asked }) => Number(asked) !== 0),
        'asked',
      ),
    balance: ({ sums }) => written(sums, 'balance'),
    ...(claims.length === 0 ? {} : { reported: ({ sums }) => written(sums.filter(isReported), 'reported') }),
    meaning: 'meaning',
  };
  return table(groups, columns);
}

function written(sums: GroupDocument['sums'], which: 'asked' | 'balance' | 'reported'): string {
  const amounts = sums.map((sum) => {
    const amount = sum[which];
    return amount === null ? 'not readable' : amountIn({ amount, currency: sum.currency });
  });
  return amounts.join(', ');
}

const MATTER_COLUMNS: Columns<MatterDocument> = {
  id: 'id',
  since: 'openedAt',
  kind: kindWords,
  order: 'reference',
  asked: ({ order }) => (order === null ? null : amountIn(order)),
  captured: ({ order }) => (order === null ? null : capturedWords(order)),
  times: 'count',
  detail: 'detail',
};

function kindWords({ kind, reason }: { kind: string; reason: string | null }): string {
  return reason === null ? kind : `${kind}: ${reason}`;
}

export const attentionEnd = defineCommand({
  usage: 'attention end ID',
  about: 'end a matter, because it is over or a person looked at it',
  details: [
    'The history of its order keeps the reason. What settled finds again it raises again.',
    'Ending refund_due or duplicate_payment says that the refund was made: the order loses that flag.',
    'The command ends with 66 if there is no such matter, or if it has ended.',
    'A hold has no ID: settled orders resolve ORDER.',
  ],
  examples: ['settled attention end 12 --reason "both events named the same payment"'],
  options: { reason: { value: 'TEXT', needed: true, about: 'why it is over' } },
  async run({ first, options: { reason }, server }) {
    const path = `${PATH}/${encodeURIComponent(first)}/end`;
    const answer = await server().post<{ attention: { id: string } }>(path, { reason });
    return { data: answer, lines: [`Matter ${answer.attention.id} has ended.`] };
  },
});

/** A mail server may take its time, and answers within a minute. */
const TEST_TIMEOUT_MS = 75_000;

export const alert = defineCommand({
  usage: 'alert',
  about: 'test whether settled reaches people, by each channel that is configured',
  details: [
    'The running server sends a message and says what each channel answered. `settled doctor` says what each took last, tests apart.',
    'The command ends with 1 if a channel does not take it, and with 78 if none is configured: docs/alerts.md.',
  ],
  examples: ['settled alert --test'],
  options: { test: { about: 'send a test message' } },
  async run({ options, server }) {
    if (options.test !== true) throw new CommandError('usage', 'alert only tests: write settled alert --test');
    type Tested = { channels: TestedChannel[] };
    const { channels } = await server().post<Tested>('/v1/admin/test-alerts', undefined, TEST_TIMEOUT_MS);
    const taken = ({ taken }: TestedChannel) => (taken ? 'taken' : 'not taken');
    return {
      data: { channels },
      lines: table(channels, { channel: 'name', test: taken, detail: 'detail' }),
      exit: channels.every(({ taken }) => taken) ? EXIT.ok : EXIT.refused,
    };
  },
});
