import type { RotationDocument, StatsDocument } from '../api/admin.ts';
import { type Environment, TARGET_NAMES, targetEnvironment } from '../config/environment.ts';
import { type ShownSetting, showConfig as settingsOf } from '../config/shown.ts';
import { inNumber } from '../explain/glossary.ts';
import { type Fault, transientFault } from '../fault.ts';
import { type Block, hanging, inBytes, jsonLine, padded, printable } from '../terminal/output.ts';
import { onStopSignal } from '../terminal/process.ts';
import { paint, type Screen, toneOf } from '../terminal/screen.ts';
import { type Columns, record, table } from '../terminal/table.ts';
import { inWords } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import { EXIT } from './exit.ts';

/** The commands by which a person operates a server: what it counts, follows, copies and re-encrypts, and its settings. */

export const stats = defineCommand({
  usage: 'stats',
  about: 'count orders, events and notices by state, and what waits',
  details: ['docs/operations.md says which of these to watch. Programs that watch read /metrics.'],
  async run({ server }) {
    const answer = await server().get<{ stats: StatsDocument }>('/v1/stats');
    const { matters, api, noticesLagSeconds, ...counts } = answer.stats;
    const kinds = matters.map(({ kind, reason, count }) => [
      `needs a person: ${reason === null ? kind : `${kind}, ${reason}`}`,
      count,
    ]);
    const lines = record({
      ...tally('orders', counts.orders),
      ...tally('events', counts.events),
      ...tally('notices', counts.notices, 'being sent'),
      ...tally('openings', counts.openings),
      ...(kinds.length === 0 ? { 'needs a person': 'nothing' } : Object.fromEntries(kinds)),
      'checks waiting': counts.checks,
      'disagreements with the service (drift)': counts.drift,
      'API slots in use': api.slotsInUse,
      'API paused until': api.pausedUntil ?? undefined,
      'deliveries to known links refused': counts.rejections,
      'lag of settlement': inWords(counts.lagSeconds * 1_000),
      'lag of notices': noticesLagSeconds === null ? 'no callback' : inWords(noticesLagSeconds * 1_000),
    });
    return { data: answer, lines };
  },
});

function tally(what: string, counts: Record<string, number>, leased = 'in work'): Record<string, number> {
  const pairs = Object.entries(counts).map(([name, n]) => [`${what} ${name === 'leased' ? leased : name}`, n]);
  return Object.fromEntries(pairs);
}

/** A line of the server, by `what`. docs/api.md has the fields of each. */
type Line = { at: string; what: string; reference: string | null } & Record<string, string | number | null>;

export const tail = defineCommand({
  usage: 'tail',
  about: 'show what happens, as it happens: deliveries, settlements, notices, links that are opened',
  details: [
    'It begins with the moment of the call: `settled events list` and `settled why ORDER` show what was before.',
    'Ctrl-C ends it. If settled stops, or the connection breaks, it ends with 69: give it again.',
    'With --json each line is a JSON object; docs/api.md has their fields.',
    'With several replicas, each shows what happens in itself.',
  ],
  examples: ['settled tail --order order-8001', 'settled tail --json | grep \'"what":"rejected"\''],
  options: { order: { value: 'REFERENCE', about: 'only what happens to this order' } },
  async run({ options, json, server, screen, print }) {
    const stop = new AbortController();
    onStopSignal(() => stop.abort());
    const connection = server();
    const show = json ? jsonLine : columns(screen);
    for await (const line of connection.followObjects<Line>('/v1/tail', { reference: options.order }, stop.signal)) {
      if (line.what === 'stopping') throw stopping(connection);
      const shown = show(line);
      if (shown !== '' && !(await print(shown))) break;
    }
    return EXIT.ok;
  },
});

function stopping({ url }: ServerApi): Fault {
  return transientFault(
    'server_unreachable',
    `settled at ${url} is stopping. What happens from now on is not shown: give the command again when it serves.`,
  );
}

/** A narrower terminal shows only the time of day. */
const WIDE_COLUMNS = 100;

/** Returns what shows a line to a person; the headings stand above the first, which says that the connection stands. */
function columns(screen: Screen): (line: Line) => string {
  const isNarrow = screen.columns !== null && screen.columns < WIDE_COLUMNS;
  let isFirst = true;
  const row = (at: string, what: string, order: string, detail: string) => {
    const time = isNarrow ? padded(at.replace(/^[\d-]+T/, ''), 13) : padded(at, 24);
    const shown = paint(screen, toneOf('what', what), what);
    const lead = [time, padded(shown, 11), padded(order, 16), ''].join('  ');
    return `${hanging(screen, lead, detail).join('\n')}\n`;
  };
  return (line) => {
    const heading = isFirst ? paint(screen, 'strong', row('TIME', 'WHAT', 'ORDER', 'DETAIL')) : '';
    isFirst = false;
    if (line.what === 'alive') return heading;
    const { at, what, reference } = line;
    return heading + row(printable(at), printable(what), printable(reference ?? '-'), printable(detailOf(line)));
  };
}

/** The other fields by their names, as in the log. */
function detailOf({ at: _, what: __, reference: ___, ...fields }: Line): string {
  const given = Object.entries(fields).filter(([, value]) => value !== null);
  return given.map(([name, value]) => `${name}=${value}`).join(' ');
}

/** For what passes over the whole database. */
const LONG_TIMEOUT_MS = 3_600_000;

type BackupAnswer = { backup: { path: string; bytes: number; notIncluded: string } };

export const backup = defineCommand({
  usage: 'backup',
  about: 'write a consistent copy of the database next to it, while the server serves',
  details: [
    'The copy does not contain the secrets key, and cannot be used without it: the answer says where the key is.',
    'Copy the key once, and keep it apart. docs/operations.md has the restore, command by command.',
    'The command makes no copy of PostgreSQL and ends with 78: docs/postgres.md says how to back that up.',
  ],
  async run({ server }) {
    const answer = await server().post<BackupAnswer>('/v1/admin/backup', undefined, LONG_TIMEOUT_MS);
    const { path, bytes, notIncluded } = answer.backup;
    return { data: answer, lines: [`${path} was written, ${inBytes(bytes)}.`, notIncluded] };
  },
});

export const rotateKey = defineCommand({
  usage: 'rotate-key',
  about: 'make a new secrets key, and encrypt all signing secrets with it, while the server serves',
  details: [
    'The secrets key encrypts the signing secrets in the database; links and what they sign do not change.',
    'It may take a while: no delivery waits for it.',
    'It ends with 78 if SETTLED_SECRETS_KEY gives the key, and then says how to change it there;',
    'with 75 if that change continues but cannot end yet, as while another replica encrypts with the key before.',
    'Afterwards copy the new key file, apart from the backups. Earlier backups still need the old one.',
  ],
  async run({ server }) {
    const answer = await server().post<{ rotation: RotationDocument }>(
      '/v1/admin/rotate-key',
      undefined,
      LONG_TIMEOUT_MS,
    );
    const { keyId, previousKeyId, secrets, resealed, keyPlace, note } = answer.rotation;
    const lines = record({ key: keyId, 'key before': previousKeyId, 'kept in': keyPlace });
    const earlier = secrets === resealed ? '' : `, ${resealed} of them now and the others before`;
    const all = `${inNumber(secrets, 'signing secret')}${earlier}`;
    const done = `The secrets key was replaced. Re-encrypted with the new one: ${all}.`;
    return { data: answer, lines: [done, note, '', ...lines] };
  },
});

export const showConfig = defineCommand({
  usage: 'config',
  about: 'show every setting with its value and where it comes from; secrets are hidden',
  details: [
    'It shows what a command or a server would read here: the environment, the .env of this folder, and files that NAME_FILE',
    'names. A server that runs elsewhere, or as another user, may have others.',
    'It asks no server, and ends with 78 if the configuration cannot be used.',
  ],
  examples: ['settled config', 'settled config --set'],
  options: { set: { about: 'only those that are not left to their default' } },
  isLocal: true,
  async run({ options, environment }) {
    const { settings, fault } = settingsOf(environment);
    const shown = options.set === true ? settings.filter(({ source }) => !IS_LEFT.has(source)) : settings;
    return {
      data: { settings: shown, fault },
      lines: [
        ...table(shown, COLUMNS, { nothing: 'Every setting is left to its default.' }),
        ...envFileLines(settings),
        ...elsewhereLines(targetEnvironment(environment)),
        ...(fault === null ? [] : ['', fault]),
      ],
      exit: fault === null ? EXIT.ok : EXIT.configuration,
    };
  },
});

const IS_LEFT: ReadonlySet<ShownSetting['source']> = new Set(['default', 'not set']);

const COLUMNS: Columns<ShownSetting> = {
  setting: 'name',
  value: ({ value, hidden, fault }) => (fault !== null ? 'cannot be used' : hidden ? '(hidden)' : value),
  source: ({ source, file }) => (file === null || source === '.env' ? source : `file ${file}`),
};

function envFileLines(settings: readonly ShownSetting[]): Block[] {
  const { file = null } = settings.find(({ source }) => source === '.env') ?? {};
  return file === null ? [] : ['', `.env is ${file}.`];
}

/** The environment that tells commands of a server elsewhere: the settings above then say nothing of that one. */
function elsewhereLines(environment: Environment): Block[] {
  const given = TARGET_NAMES.filter((name) => environment[name]);
  if (given.length === 0) return [];
  return ['', `Commands ask a server elsewhere, for which the environment has: ${given.join(', ')}.`];
}
