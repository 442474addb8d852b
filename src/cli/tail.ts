import { Fault } from '../fault.ts';
import { escapeMarks } from '../json.ts';
import { defineCommand } from './command.ts';
import type { Connection } from './connection.ts';
import { count, padded, printable } from './layout.ts';

/** What the server tells, by `what`. docs/api.md has the fields of each. */
type Line = { at: string; what: string; reference: string | null } & Record<string, string | number | null>;

export const tail = defineCommand({
  name: 'tail',
  positionals: '',
  about: 'show what happens, as it happens: deliveries, settlements, notices, links that are opened',
  details: [
    'It begins with the moment of the call: what was before is in `settled events list` and `settled why ORDER`. It ends with',
    'Ctrl-C. Where settled stops, or the connection breaks, it ends with 69: give it again. With --json each line is a JSON',
    'object; docs/api.md has their fields. Of several replicas each shows what happens in itself.',
  ],
  examples: ['settled tail --order order-8001', 'settled tail --json | grep \'"what":"rejected"\''],
  options: { order: { value: 'REFERENCE', about: 'only what happens to this order' } },
  async run({ options, json, server, print }) {
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop.abort());
    const connection = server();
    const show = json ? (line: Line) => escapeMarks(JSON.stringify(line)) : forPeople();
    const lines = connection.follow('/v1/tail', { reference: options.order }, stop.signal);
    for await (const text of lines) {
      const line = JSON.parse(text) as Line;
      if (line.what === 'stopping') throw stopping(connection);
      const shown = show(line);
      if (shown !== null && !(await print(`${shown}\n`))) return null;
    }
    return null;
  },
});

function stopping({ url }: Connection): Fault {
  return new Fault(
    'transient',
    'server_unreachable',
    `settled at ${url} is stopping. What happens from now on is not shown: give the command again when it serves.`,
  );
}

const WHAT_COLUMNS = 11;

/** Returns what writes a line for a person. The first that comes says that the connection stands. */
function forPeople(): (line: Line) => string | null {
  let orderColumns = 12;
  let isFirst = true;
  const row = (at: string, what: string, order: string, detail: string) => {
    orderColumns = Math.max(orderColumns, order.length);
    return [padded(at, 24), padded(what, WHAT_COLUMNS), padded(order, orderColumns), detail].join('  ').trimEnd();
  };
  return (line) => {
    const heading = isFirst ? row('TIME', 'WHAT', 'ORDER', 'DETAIL') : null;
    isFirst = false;
    if (line.what === 'alive') return heading;
    return row(line.at, line.what, printable(line.reference ?? '-'), printable(detailOf(line)));
  };
}

function detailOf(line: Line): string {
  const { type, event, reading, outcome, rule, state, reason, notice, attempt, status, fault } = line;
  const source = reading === null || reading === undefined ? `event ${event}` : `reading ${reading}`;
  switch (line.what) {
    case 'accepted':
    case 'duplicate':
    case 'conflict':
    case 'unreadable':
      return `${type ?? 'without a type'}, event ${event}`;
    case 'stale':
      return String(type ?? 'without a type');
    case 'settled':
      return `${state}: ${outcome}${rule === null ? ', no news of a payment was read' : ` by ${rule}`} (${source})`;
    case 'not_settled':
      return `${outcome} (event ${event})`;
    case 'notified':
      return `${type} ${outcome}, attempt ${attempt}: ${status ?? fault} (${notice})`;
    case 'opening':
      return `${outcome}, attempt ${attempt}`;
    case 'lost':
      return `${count(Number(line.count), 'line')} too many at once: see settled events list`;
    default:
      return String(reason ?? '');
  }
}
