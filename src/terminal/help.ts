import { COMMON_OPTIONS, type Command, commandOf, type Options, type Report, usageOf } from './command.ts';
import { type Block, hanging, padded, strong, verbatim, width } from './output.ts';
import { commandsOf, furtherOptions, noSuchCommand, type Program } from './program.ts';
import { paint, type Screen } from './screen.ts';

/** What help says, made from the table of commands. */

/** The command `help` of a program. */
export function helpCommand<A>(program: () => Program<A>): Command<A> {
  return commandOf({
    usage: 'help [COMMAND...]',
    about: 'list the commands, or say how one is used',
    isLocal: true,
    run: async ({ positionals }) => helpOn(program(), positionals),
  });
}

/** Help on one command, or on all that begin with the words given. Throws `UsageError` if there is none. */
export function helpOn<A>(program: Program<A>, words: readonly string[]): Report {
  if (words.length === 0) return overview(program);
  const asked = words.join(' ');
  const commands = commandsOf(program);
  const exact = commands.find(({ name }) => name === asked);
  if (exact !== undefined) return commandHelp(program, exact);
  const group = commands.filter(({ name }) => name.startsWith(`${asked} `));
  if (group.length === 0) throw noSuchCommand(program, words);
  return groupHelp(program, group);
}

function overview<A>(program: Program<A>): Report {
  const { name, about, groups, programs, notes, exits } = program;
  const commands = commandsOf(program);
  const rowsOf = (some: readonly Command<A>[]) => some.map((command) => usageRow(program, command));
  const rows = rowsOf(commands);
  const sections: [string, Row[], Row[]?][] = [
    ...Object.entries(groups).map(([heading, group]): [string, Row[], Row[]] => [heading, rowsOf(group), rows]),
    ['To try it', Object.entries(programs).map(([one, what]): Row => [`${name} ${one}`, what]), rows],
    ['With every command', optionRows(COMMON_OPTIONS)],
    ['With every command that asks the server', optionRows(program.options)],
    ['Exit codes', Object.entries(exits).map(([code, meaning]) => [code.padStart(2), meaning])],
  ];
  return {
    data: { commands: commands.map((command) => describe(program, command)), exitCodes: exits },
    lines: [
      about,
      '',
      `Usage: ${name} COMMAND [OPTION...]`,
      ...sections.flatMap(([heading, its, like]) =>
        its.length === 0 ? [] : ['', strong(`${heading}:`), inPairs(its, like)],
      ),
      '',
      ...notes,
    ],
  };
}

/** Help on the commands whose first word is the same. */
function groupHelp<A>(program: Program<A>, group: readonly Command<A>[]): Report {
  return {
    data: { commands: group.map((command) => describe(program, command)) },
    lines: [inPairs(group.map((command) => usageRow(program, command)))],
  };
}

function commandHelp<A>(program: Program<A>, command: Command<A>): Report {
  const { about, details = [], examples = [], options } = command;
  const title = `${program.name} ${command.name}`;
  const [own, further] = [optionRows(options), optionRows(furtherOptions(program, command))];
  const all = [...own, ...further];
  const usage = usageOf(command as Command<never>).replace(command.name, title);
  return {
    data: describe(program, command),
    lines: [
      `${title}: ${about}`,
      '',
      (screen) => hanging(within(screen), 'Usage: ', `${usage} [OPTION...]`),
      '',
      ...(own.length === 0 ? [] : [inPairs(own, all), '']),
      inPairs(further, all),
      ...(details.length === 0 ? [] : ['', ...sentences(details)]),
      ...(examples.length === 0 ? [] : ['', strong('Examples:'), ...examples.map((line) => verbatim(`  ${line}`))]),
    ],
  };
}

/** Lines of help, of which those that continue a sentence are joined to it. */
function sentences(details: readonly string[]): Block[] {
  const joined: string[] = [];
  for (const line of details) {
    const before = joined.at(-1);
    if (before === undefined || /(?:[.:;]|^)$/.test(before) || line.startsWith(' ')) joined.push(line);
    else joined.splice(-1, 1, `${before} ${line}`);
  }
  return joined.map((line) => (screen) => hanging(within(screen), '', line));
}

/** A command for a program. */
function describe<A>(program: Program<A>, command: Command<A>) {
  const { name, positionals, about, choices } = command;
  const all = Object.entries({ ...command.options, ...furtherOptions(program, command) });
  const options = all.map(([option, { value, choices, needed, about }]) => {
    return [option, { value, choices, about: needed === undefined ? about : `${about}; needed` }] as const;
  });
  return { name, positionals, choices, about, options: Object.fromEntries(options) };
}

function optionRows(options: Options): Row[] {
  return Object.entries(options).map(([name, { value = '', choices, needed, isRepeatable, about }]): Row => {
    const said = choices === undefined ? about : `${about}: ${choices.join(', ')}`;
    const more = [said, ...(needed ? ['needed'] : []), ...(isRepeatable ? ['may be given several times'] : [])];
    return [`--${name} ${value}`.trimEnd(), more.join('; ')];
  });
}

type Row = readonly [left: string, right: string];

function usageRow<A>(program: Program<A>, { name, positionals, about }: Command<A>): Row {
  return [`${program.name} ${name} ${positionals}`.trimEnd(), about];
}

/** Of help in a pipe, or on a wider terminal. */
const COLUMNS_MAX = 116;

function within(screen: Screen): Screen {
  return { ...screen, columns: Math.min(screen.columns ?? COLUMNS_MAX, COLUMNS_MAX) };
}

/** Rows in two columns, which are aligned with those of `like`. */
function inPairs(rows: readonly Row[], like: readonly Row[] = rows): Block {
  const columns = Math.max(...like.map(([left]) => width(left)));
  return (screen) =>
    rows.flatMap(([left, right]) =>
      hanging(within(screen), `  ${padded(paint(screen, 'strong', left), columns)}  `, right),
    );
}
