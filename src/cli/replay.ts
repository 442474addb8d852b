import { UsageError } from './arguments.ts';
import { type Call, defineCommand, type Report } from './command.ts';
import { type Connection, Refusal } from './connection.ts';
import { type EventRow, eventTable } from './events.ts';
import { EXIT, type ExitCode } from './exit.ts';
import { count, table } from './layout.ts';
import { listRows } from './pages.ts';

const OPTIONS = {
  status: { value: 'STATUS', choices: ['dead', 'done'], about: 'all events with this status' },
  reference: { value: 'REFERENCE', about: 'all settled and dead events of this order' },
  'dry-run': { about: 'only say what would be replayed' },
  yes: { about: 'replay all that --status or --reference name' },
} as const;

export const eventsReplay = defineCommand({
  name: 'events replay',
  positionals: '[ID...]',
  about: 'settle recorded events again: those named, or all of a status or an order',
  details: ['An order is never paid twice by it: its settlement row guards against that.'],
  options: OPTIONS,
  async run(call) {
    const { positionals, options } = call;
    const filtered = options.status !== undefined || options.reference !== undefined;
    if (positionals.length > 0 && filtered) {
      throw new UsageError('Name events by ID, or by --status and --reference: not both.');
    }
    if (positionals.length === 0 && !filtered) {
      throw new UsageError('`settled events replay` needs ID..., --status or --reference.');
    }
    const server = call.server();
    const events = filtered ? await findEvents(server, options) : null;
    if (options['dry-run']) return dryRun(events ?? (await fetchEvents(server, positionals)));
    if (events !== null && events.length > 0 && !options.yes) {
      const what = count(events.length, 'event');
      throw new UsageError(
        `${what} would be replayed, and nothing was done. Look at them with --dry-run; replay them with --yes.`,
      );
    }
    return replayAll(server, events?.map(({ id }) => id) ?? positionals);
  },
});

type Options = Call<typeof OPTIONS>['options'];

async function findEvents(server: Connection, { status, reference }: Options): Promise<EventRow[]> {
  const list = { path: '/v1/events', field: 'events', query: { status, reference } };
  const { rows } = await listRows<EventRow>(server, list, { all: true });
  // Oldest first, as they came.
  return rows.filter(isReplayable).reverse();
}

function isReplayable({ status }: EventRow): boolean {
  return status === 'dead' || status === 'done';
}

async function fetchEvents(server: Connection, ids: readonly string[]): Promise<EventRow[]> {
  const events: EventRow[] = [];
  for (const id of ids) {
    const { event } = await server.get<{ event: EventRow }>(`/v1/events/${encodeURIComponent(id)}`);
    events.push(event);
  }
  return events;
}

function dryRun(events: readonly EventRow[]): Report {
  const would = events.filter(isReplayable);
  const lines = [`${count(would.length, 'event')} would be replayed. Nothing was done.`];
  if (events.length > 0) lines.push('', ...eventTable(events));
  return { data: { dryRun: true, wouldReplay: would.map(({ id }) => id) }, lines };
}

type Replayed = { id: string; result: string; exit: ExitCode };

async function replayAll(server: Connection, ids: readonly string[]): Promise<Report> {
  const results: Replayed[] = [];
  for (const id of ids) {
    results.push(await replayOne(server, id));
  }
  const exits = results.map(({ exit }) => exit);
  const replayed = results.filter(({ exit }) => exit === EXIT.ok).length;
  const rows = results.map(({ id, result }) => [id, result]);
  return {
    data: { dryRun: false, replayed, events: results.map(({ id, result }) => ({ id, result })) },
    lines: [`${count(replayed, 'event')} replayed.`, '', ...table(['id', 'result'], rows, 'No such events.')],
    exit: exits.find((exit) => exit !== EXIT.ok) ?? EXIT.ok,
  };
}

/** One refusal does not end the others. */
async function replayOne(server: Connection, id: string): Promise<Replayed> {
  try {
    await server.post(`/v1/events/${encodeURIComponent(id)}/replay`);
    return { id, result: 'pending: it is settled again now', exit: EXIT.ok };
  } catch (error) {
    if (!(error instanceof Refusal) || error.exit === EXIT.tryAgain) throw error;
    return { id, result: error.message, exit: error.exit };
  }
}
