// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the scripts are the shells' own
import { type Command, type Option, type Options, optionsOf } from './command.ts';

/** Scripts by which shells complete `settled`, made from the table of commands. They name everything, and run nothing. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Known = { commands: readonly Command[]; programs: Readonly<Record<string, string>> };

export function completionScript(shell: (typeof SHELLS)[number], known: Known): string[] {
  return { bash: bashLines, zsh: zshLines, fish: fishLines }[shell](known);
}

/** Values that are paths: those of options called FILE, and a backup. */
const PATHS = new Set(['FILE', 'BACKUP']);

/** The first words of commands with what they do; groups name what they begin. */
function firstWords({ commands, programs }: Known): [string, string][] {
  const firsts = [...new Set(commands.map(({ name }) => name.split(' ', 1)[0] as string))];
  const words = firsts.map((first): [string, string] => {
    const exact = commands.find(({ name }) => name === first);
    return [
      first,
      exact?.about ??
        secondWords(commands, first)
          .map(([second]) => second)
          .join(', '),
    ];
  });
  return [...words, ...Object.entries(programs)];
}

function secondWords(commands: readonly Command[], first: string): [string, string][] {
  return commands.flatMap(({ name, about }): [string, string][] => {
    const [one, two] = name.split(' ');
    return one === first && two !== undefined ? [[two, about]] : [];
  });
}

function groupsOf(known: Known): [string, [string, string][]][] {
  return firstWords(known).flatMap(([first]): [string, [string, string][]][] => {
    const seconds = secondWords(known.commands, first);
    return seconds.length === 0 ? [] : [[first, seconds]];
  });
}

const entriesOf = (options: Options): [string, Option][] => Object.entries(options);

/** What may stand at the place of the argument. */
function argumentsOf({ name, positionals }: Command): { words: readonly string[]; isPath: boolean } {
  const isPath = PATHS.has(positionals);
  return { words: name === 'completion' ? SHELLS : [], isPath };
}

function bashLines(known: Known): string[] {
  const { commands } = known;
  const words = (list: readonly (readonly [string, unknown])[]) => list.map(([word]) => word).join(' ');
  const values = commands.flatMap((command) =>
    entriesOf(optionsOf(command)).flatMap(([option, { value = '', choices }]) => {
      const key = `    '${command.name} --${option}')`;
      if (choices !== undefined) return [`${key} words='${choices.join(' ')}' ;;`];
      if (PATHS.has(value)) return [`${key} files=1 ;;`];
      return value === '' ? [] : [`${key} none=1 ;;`];
    }),
  );
  return [
    '# Completion of settled for bash: source <(settled completion bash)',
    '_settled() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i first= second= key words= files= none=',
    '  # Bash takes "=" for a word of its own.',
    '  if [[ $cur == "=" ]]; then cur=; elif [[ $prev == "=" ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    case ${COMP_WORDS[i]} in',
    '      -*) ;;',
    '      *) if [[ -z $first ]]; then first=${COMP_WORDS[i]}; elif [[ -z $second ]]; then second=${COMP_WORDS[i]}; fi ;;',
    '    esac',
    '  done',
    '  key=$first',
    '  case "$first $second" in',
    `    ${commands.flatMap(({ name }) => (name.includes(' ') ? [`'${name}'`] : [])).join('|')}) key="$first $second" ;;`,
    '  esac',
    '  case "$key $prev" in',
    ...values,
    '  esac',
    '  if [[ -z $words$files$none ]]; then',
    '    case $key in',
    `      '') words='${words(firstWords(known))}' ;;`,
    ...commands.map((command) => {
      const options = entriesOf(optionsOf(command)).map(([option]) => `--${option}`);
      const argument = argumentsOf(command);
      const seconds = secondWords(commands, command.name).map(([second]) => second);
      const all = [...seconds, ...argument.words, ...options];
      return `      '${command.name}') words='${all.join(' ')}'${argument.isPath ? ' files=1' : ''} ;;`;
    }),
    ...groupsOf(known)
      .filter(([first]) => !commands.some(({ name }) => name === first))
      .map(([first, seconds]) => `      ${first}) words='${words(seconds)}' ;;`),
    '    esac',
    '  fi',
    `  [[ $key == help ]] && words+=' ${words(firstWords(known))}'`,
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    // Names of files may have spaces in them.
    "  local IFS=$'\\n'",
    '  [[ -n $files ]] && COMPREPLY+=($(compgen -f -- "$cur"))',
    '}',
    'complete -o filenames -F _settled settled',
  ];
}

/** Text in single quotes, for zsh and fish alike. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function zshLines(known: Known): string[] {
  const { commands } = known;
  const pairs = (list: readonly [string, string][]) =>
    list.map(([word, about]) => quoted(`${word}:${about}`)).join(' ');
  // These have a meaning in the specifications of _arguments.
  const told = (text: string) => text.replace(/[[\]:\\]/g, '\\$&');
  const specOf = ([option, { value, choices, about }]: [string, Option]): string => {
    const said = `[${told(about)}]`;
    if (value === undefined) return quoted(`--${option}${said}`);
    const action = choices !== undefined ? `(${choices.join(' ')})` : PATHS.has(value) ? '_files' : '()';
    return quoted(`--${option}=${said}:${told(value)}:${action}`);
  };
  const argumentsSpec = (command: Command): string => {
    const { words, isPath } = argumentsOf(command);
    const action = words.length > 0 ? `(${words.join(' ')})` : isPath ? '_files' : '()';
    return command.positionals === '' ? '' : ` ${quoted(`*:${told(command.positionals)}:${action}`)}`;
  };
  return [
    '#compdef settled',
    '# Completion of settled for zsh: source <(settled completion zsh)',
    '_settled() {',
    '  local -a firsts seconds',
    '  local key="$words[2]" skip=1',
    `  firsts=(${pairs(firstWords(known))})`,
    '  case "$words[2]" in',
    ...groupsOf(known).map(([first, seconds]) => `    ${first}) seconds=(${pairs(seconds)}) ;;`),
    '  esac',
    '  if (( CURRENT == 2 )); then _describe command firsts; return; fi',
    '  if (( CURRENT == 3 && ${#seconds} )); then _describe command seconds && return; fi',
    '  if (( CURRENT == 3 )) && [[ "$words[2]" == help ]]; then _describe command firsts; return; fi',
    '  if (( ${#seconds} )) && [[ -n "${seconds[(r)$words[3]:*]}" ]]; then key="$words[2] $words[3]" skip=2; fi',
    '  words=("$words[1]" "${(@)words[skip+2,-1]}")',
    '  (( CURRENT -= skip ))',
    '  case "$key" in',
    ...commands.map((command) => {
      const specs = entriesOf(optionsOf(command)).map(specOf).join(' ');
      return `    ${quoted(command.name)}) _arguments ${specs}${argumentsSpec(command)} ;;`;
    }),
    '  esac',
    '}',
    '# Sourced, or loaded by compinit from a folder of fpath.',
    'if [[ "$funcstack[1]" == _settled ]]; then _settled "$@"; else compdef _settled settled; fi',
  ];
}

function fishLines(known: Known): string[] {
  const { commands } = known;
  const told = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const twoWords = commands.filter(({ name }) => name.includes(' ')).map(({ name }) => told(name));
  const optionLine = ({ name }: Command, [option, { value, choices, about }]: [string, Option]): string => {
    const takes =
      value === undefined
        ? ''
        : choices !== undefined
          ? ` -xa ${told(choices.join(' '))}`
          : PATHS.has(value)
            ? ' -rF'
            : ' -x';
    return `complete -c settled -n ${told(`__settled_is '${name}'`)} -l ${option}${takes} -d ${told(about)}`;
  };
  return [
    '# Completion of settled for fish: settled completion fish | source',
    'function __settled_is',
    '  set -l words (commandline -opc)',
    "  set -l given (string match -v -- '-*' $words[2..])",
    '  set -l key "$given[1]"',
    `  contains -- "$given[1] $given[2]" ${twoWords.join(' ')}; and set key "$given[1] $given[2]"`,
    '  test "$key" = "$argv[1]"',
    'end',
    'complete -c settled -f',
    ...firstWords(known).map(
      ([word, about]) => `complete -c settled -n ${told("__settled_is ''")} -a ${word} -d ${told(about)}`,
    ),
    ...firstWords(known).map(
      ([word, about]) => `complete -c settled -n ${told("__settled_is 'help'")} -a ${word} -d ${told(about)}`,
    ),
    ...groupsOf(known).flatMap(([first, seconds]) =>
      seconds.map(
        ([second, about]) => `complete -c settled -n ${told(`__settled_is '${first}'`)} -a ${second} -d ${told(about)}`,
      ),
    ),
    ...commands.flatMap((command) => {
      const { words, isPath } = argumentsOf(command);
      const argument = `complete -c settled -n ${told(`__settled_is '${command.name}'`)}`;
      return [
        ...entriesOf(optionsOf(command)).map((option) => optionLine(command, option)),
        ...(words.length > 0 ? [`${argument} -a ${told(words.join(' '))}`] : []),
        ...(isPath ? [`${argument} -F`] : []),
      ];
    }),
  ];
}
