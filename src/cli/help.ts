import {
  type Command,
  commonOptionsOf,
  LEADING_OPTIONS,
  type Options,
  optionsOf,
  type Report,
  usageOf,
} from './command.ts';
import { EXIT_MEANINGS } from './exit.ts';
import { type Block, verbatim, width, wrap } from './output.ts';
import { paint, type Screen } from './screen.ts';

/** What `settled help` says, made from the table of commands. */

export type Groups = Readonly<Record<string, readonly Command[]>>;

/** Programs of their own, which an installation may leave out: the launcher finds them. */
export const PROGRAMS: Readonly<Record<string, string>> = {
  demo: 'play a tiny shop, settled and a payment-link service together',
  sandbox: 'run a payment-link service of your own to try settled with',
};

export function overview(groups: Groups): Report {
  const commands = Object.values(groups).flat();
  const exits = Object.entries(EXIT_MEANINGS);
  const rows = commands.map(usageRow);
  const programs = Object.entries(PROGRAMS).map(([name, about]): Row => [`settled ${name}`, about]);
  return {
    data: { commands: commands.map(describe), exitCodes: Object.fromEntries(exits) },
    lines: [
      'settled marks the orders of a shop paid: once, durably, and for the right money.',
      '',
      'Usage: settled COMMAND [OPTION...]',
      ...Object.entries(groups).flatMap(([heading, group]) => [
        '',
        strong(`${heading}:`),
        columnLines(group.map(usageRow), rows),
      ]),
      '',
      strong('To try it:'),
      columnLines(programs, rows),
      '',
      strong('With every command:'),
      columnLines(optionRows(commonOptionsOf({ isLocal: true } as Command))),
      '',
      strong('With every command that asks the server:'),
      columnLines(optionRows(withoutLocal())),
      '',
      '`settled help COMMAND` says more about one command; `settled completion SHELL` lets your shell complete them.',
      "Settings are in the environment, SETTLED_*: `settled config` shows them. A command needs the server's, or --at.",
      '',
      strong('Exit codes:'),
      columnLines(exits.map(([code, meaning]) => [code.padStart(2), meaning])),
    ],
  };
}

function withoutLocal(): Options {
  const local = commonOptionsOf({ isLocal: true } as Command);
  return Object.fromEntries(Object.entries(LEADING_OPTIONS).filter(([name]) => !Object.hasOwn(local, name)));
}

/** Help on the commands whose first word is the same. */
export function groupHelp(group: readonly Command[]): Report {
  return { data: { commands: group.map(describe) }, lines: [columnLines(group.map(usageRow))] };
}

export function commandHelp(command: Command): Report {
  const { name, about, details = [], examples = [], options } = command;
  const [own, common] = [optionRows(options), optionRows(commonOptionsOf(command))];
  const all = [...own, ...common];
  return {
    data: describe(command),
    lines: [
      `settled ${name}: ${about}`,
      '',
      usageLine(command),
      '',
      ...(own.length === 0 ? [] : [columnLines(own, all), '']),
      columnLines(common, all),
      ...(details.length === 0 ? [] : ['', paragraphs(details)]),
      ...(examples.length === 0 ? [] : ['', strong('Examples:'), ...examples.map((line) => verbatim(`  ${line}`))]),
    ],
  };
}

function usageLine(command: Command): Block {
  const name = 'Usage: ';
  return ({ columns }) => {
    const room = (columns ?? COLUMNS) - name.length;
    return wrap(`${usageOf(command)} [OPTION...]`, room).map((line, at) => (at === 0 ? name : ' '.repeat(7)) + line);
  };
}

/** Lines of help, as they are in a pipe. On a terminal those that continue a sentence are joined to it, and broken anew. */
function paragraphs(details: readonly string[]): Block {
  return ({ columns }) => {
    if (columns === null || columns >= COLUMNS) return details;
    const joined: string[] = [];
    for (const line of details) {
      const before = joined.at(-1);
      if (before === undefined || /[.:;]$/.test(before)) joined.push(line);
      else joined.splice(-1, 1, `${before} ${line}`);
    }
    return joined.flatMap((line) => wrap(line, columns));
  };
}

function strong(text: string): Block {
  return (screen) => [paint(screen, 'strong', text)];
}

/** A command for a program. */
function describe(command: Command) {
  const { name, positionals, about } = command;
  const options = Object.entries(optionsOf(command)).map(([option, { value, choices, needed, about }]) => {
    return [option, { value, choices, about: needed === undefined ? about : `${about}; needed` }] as const;
  });
  return { name, positionals, about, options: Object.fromEntries(options) };
}

function optionRows(options: Options): Row[] {
  return Object.entries(options).map(([name, { value = '', choices, needed, about }]): Row => {
    const said = choices === undefined ? about : `${about}: ${choices.join(', ')}`;
    return [`--${name} ${value}`.trimEnd(), needed === undefined ? said : `${said}; needed`];
  });
}

type Row = readonly [left: string, right: string];

function usageRow(command: Command): Row {
  const { name, positionals, about } = command;
  return [`settled ${name} ${positionals}`.trimEnd(), about];
}

const COLUMNS = 116;
/** A right column that would be given fewer columns stands below the left one. */
const RIGHT_COLUMNS_MIN = 30;

/** Rows in two columns, which are aligned with those of `all`. */
function columnLines(rows: readonly Row[], all: readonly Row[] = rows): Block {
  const indent = Math.max(...all.map(([left]) => width(left))) + 4;
  return (screen: Screen) => {
    const most = Math.min(screen.columns ?? COLUMNS, COLUMNS);
    const isBelow = most - indent < RIGHT_COLUMNS_MIN;
    return rows.flatMap(([left, right]) => {
      const start = isBelow ? 6 : indent;
      const [first = '', ...more] = wrap(right, most - start).map((line) => ' '.repeat(start) + line);
      const name = paint(screen, 'strong', left);
      if (isBelow) return [`  ${name}`, first, ...more];
      return [`  ${name}${first.slice(2 + width(left))}`, ...more];
    });
  };
}
