import type { BulkRunDocument } from '../api/bulk.ts';
import type { CountDocument } from '../api/lists.ts';
import { ATTENTION_KINDS } from '../domain/matter.ts';
import { HOLD_REASONS } from '../domain/order.ts';
import { BULK, WHY_CANCELLED } from '../explain/glossary.ts';
import type { Command, Options, Report } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { record } from '../terminal/table.ts';
import { defineCommand } from './command.ts';
import { EVENT_OPTIONS, listCommand, NOTICE_OPTIONS, ORDER_OPTIONS, queryOf, SINCE, thereAre, UNTIL } from './lists.ts';

/** The commands that start work on all rows of a filter, which the server carries out in the background. */

type RunAnswer = { run: BulkRunDocument };

type Start = { name: string; action: BulkRunDocument['action']; about: string; options: Options; example: string };

function startCommand({ name, action, about, options, example }: Start): Command {
  const { one, needsReason } = BULK[action];
  const isNeeded = needsReason ? 'needed, but not with --dry-run; ' : '';
  return defineCommand({
    usage: `bulk ${name}`,
    about,
    details: [
      'The server notes what the options select now, at most 10 000, and works through it in the background.',
      'It starts at once: look first with --dry-run. `settled bulk list` shows how far it is.',
    ],
    examples: [`settled bulk ${name} ${example} --dry-run`, `settled bulk ${name} ${example}`],
    options: {
      ...options,
      reason: { value: 'TEXT', about: `why; ${isNeeded}kept with the run` },
      'dry-run': { about: 'only say how many there are' },
    },
    async run({ options: { 'dry-run': preview, reason, ...filters }, server }) {
      if (needsReason && reason === undefined && preview !== true) {
        throw new UsageError(`\`settled bulk ${name}\` needs --reason TEXT.`);
      }
      const filter = queryOf(filters);
      if (Object.keys(filter).length === 0) {
        const any = Object.keys(options).map((option) => `--${option}`);
        throw new UsageError(`\`settled bulk ${name}\` needs at least one of: ${any.join(', ')}.`);
      }
      const answer = await server().post<RunAnswer | { count: CountDocument }>('/v1/bulk', {
        action,
        filter,
        ...(reason === undefined ? {} : { reason }),
        preview: preview === true,
      });
      if ('run' in answer) return report(answer);
      return { data: answer, lines: [`${thereAre(answer.count, one)} Nothing was done.`] };
    },
  });
}

export const bulkReplay = startCommand({
  name: 'replay',
  action: 'replay_events',
  about: 'settle all events again that the options select',
  options: EVENT_OPTIONS,
  example: '--status dead',
});

export const bulkResend = startCommand({
  name: 'resend',
  action: 'resend_notices',
  about: 'send all notices again that the options select',
  options: NOTICE_OPTIONS,
  example: '--status dead --since 2d',
});

export const bulkCheck = startCommand({
  name: 'check',
  action: 'check_orders',
  about: 'ask the service about all orders that the options select, within its budget',
  options: ORDER_OPTIONS,
  example: '--state awaiting_payment --since 1d',
});

export const bulkAccept = startCommand({
  name: 'accept',
  action: 'accept_orders',
  about: 'accept the money of all orders that are held for one reason, as it was counted',
  options: {
    hold: { value: 'REASON', choices: HOLD_REASONS, needed: true, about: 'only orders that are held for this reason' },
    since: SINCE,
    until: UNTIL,
  },
  example: '--hold amount_mismatch --reason "the quotes are right"',
});

export const bulkEnd = startCommand({
  name: 'end',
  action: 'end_attention',
  about: 'end all matters of a kind',
  options: {
    kind: { value: 'KIND', choices: ATTENTION_KINDS, needed: true, about: 'only matters of this kind' },
    since: SINCE,
    until: UNTIL,
  },
  example: '--kind link_missing --reason "looked at all of them"',
});

export const bulkList = listCommand<BulkRunDocument>({
  usage: 'bulk list',
  about: 'list bulk runs, the newest first, and how far they are',
  list: 'bulk',
  nothing: 'There are no bulk runs.',
  columns: {
    id: 'id',
    started: 'startedAt',
    action: 'action',
    filter: ({ filter }) => filterWords(filter),
    by: 'by',
    status: 'status',
    done: ({ done, total }) => `${done} of ${total}`,
    'ends about': 'expectedEndAt',
  },
});

function filterWords(filter: BulkRunDocument['filter']): string {
  return Object.entries(filter)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(' ');
}

export const bulkShow = defineCommand({
  usage: 'bulk show ID',
  about: 'show how far a bulk run is',
  examples: ['settled bulk show 12'],
  run: async ({ first, server }) => report(await server().get<RunAnswer>(runPath(first))),
});

export const bulkCancel = defineCommand({
  usage: 'bulk cancel ID',
  about: 'stop a bulk run; what it did stays',
  examples: ['settled bulk cancel 12'],
  run: async ({ first, server }) => report(await server().post<RunAnswer>(`${runPath(first)}/cancel`, {})),
});

function runPath(id: string): string {
  return `/v1/bulk/${encodeURIComponent(id)}`;
}

function report(answer: RunAnswer): Report {
  const { run } = answer;
  const { total, done, changed, skipped, failed } = run;
  const lines = record({
    id: run.id,
    action: run.action,
    filter: filterWords(run.filter),
    reason: run.reason,
    'started by': run.by,
    started: run.startedAt,
    status: run.detail === null ? run.status : `${run.status}: ${WHY_CANCELLED[run.detail]}`,
    done: `${done} of ${total}: ${changed} ${BULK[run.action].changed}, ${skipped} skipped, ${failed} failed`,
    'why skipped': skipped > 0 ? BULK[run.action].skipped : undefined,
    'not selected': run.isMore ? 'there are more: start it again for them' : undefined,
    ended: run.endedAt,
    'ends about': run.expectedEndAt ?? undefined,
  });
  return { data: answer, lines };
}
