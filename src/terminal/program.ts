import { type Arguments, COMMON_OPTIONS, type Command, type Options } from './command.ts';
import { type Failure, nearest, UsageError } from './failure.ts';

/** A program with commands, and which of them some words mean. */

export type Program<Around = object> = {
  /** How it is called: `settled sandbox`. */
  readonly name: string;
  /** What it is for, in a sentence. */
  readonly about: string;
  /** Every command, in the order and under the headings in which help shows them. */
  readonly groups: Readonly<Record<string, readonly Command<Around>[]>>;
  /** The name of the command that runs if none is named; help if left out. */
  readonly usual?: string;
  /** Options of every command that is not local. */
  readonly options: Options;
  /** Programs of their own that the launcher finds, with what they do. */
  readonly programs: Readonly<Record<string, string>>;
  /** What help says last. */
  readonly notes: readonly string[];
  readonly exits: Readonly<Record<string, string>>;
  /** What an error of this command means. */
  failure(error: unknown, command?: Command<Around>): Failure;
  /** What a call of the command has besides its arguments. */
  around(options: Arguments['options'], command: Command<Around>): Around;
};

export function commandsOf<A>(program: Program<A>): Command<A>[] {
  return Object.values(program.groups).flat();
}

/** The options that a command takes besides its own. */
export function furtherOptions<A>({ options }: Program<A>, { isLocal }: Command<A>): Options {
  return isLocal ? COMMON_OPTIONS : { ...options, ...COMMON_OPTIONS };
}

/** By its one or two words. */
export function findCommand<A>(program: Program<A>, [first, second]: readonly string[]): Command<A> | undefined {
  const commands = commandsOf(program);
  return commands.find(({ name }) => name === `${first} ${second}`) ?? commands.find(({ name }) => name === first);
}

/** The error about words that are no command. It names what was probably meant, or what the first word can begin. */
export function noSuchCommand<A>(program: Program<A>, words: readonly string[]): UsageError {
  const { name: title } = program;
  const [first = '', next = ''] = words;
  const second = next.startsWith('-') ? '' : next;
  const names = [...commandsOf(program).map(({ name }) => name), ...Object.keys(program.programs)];
  const group = names.filter((name) => `${name} `.startsWith(`${first} `));
  const firsts = group.length > 0 ? [] : names.map((name) => name.split(' ', 1)[0] as string);
  const swapped = names.find((name) => name === `${second} ${first}`);
  const meant = swapped ?? nearest(`${first} ${second}`.trim(), names) ?? nearest(first, firsts);
  const guess = meant === null ? '' : ` Did you mean \`${title} ${meant}\`?`;
  const advice = first.startsWith('-') ? ' Options stand behind the command.' : '';
  if (group.length === 0) return new UsageError(`There is no command "${first}".${guess}${advice} See: ${title} help`);
  const list = group.map((name) => `${title} ${name}`).join(', ');
  if (second === '') return new UsageError(`\`${title} ${first}\` needs one more word. There are: ${list}.`);
  return new UsageError(`There is no command \`${title} ${first} ${second}\`.${guess} There are: ${list}.`);
}

/** The second words of the commands that begin with this one. */
export function secondWords<A>(program: Program<A>, first: string): string[] {
  const names = commandsOf(program).map(({ name }) => name.split(' '));
  return names.flatMap(([one, two]) => (one === first && two !== undefined ? [two] : []));
}
