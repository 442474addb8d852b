// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the scripts are the shells' own
import { type Command, LEADING_OPTIONS, type Option, type Options, optionsOf } from './command.ts';

/** Scripts by which shells complete `settled`, made from the table of commands. They name everything, and run nothing. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

type Known = { commands: readonly Command[]; programs: Readonly<Record<string, string>> };
type Word = [word: string, about: string];

export function completionScript(shell: (typeof SHELLS)[number], known: Known): string[] {
  return { bash: bashLines, zsh: zshLines, fish: fishLines }[shell](known);
}

/** Values that are paths: those of options called FILE, and a backup. */
const PATHS = new Set(['FILE', 'BACKUP']);

/** What the programs of their own take first, which know it themselves. */
export const WORDS_OF_PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  demo: ['--once', '--keep', '--json', '--help'],
  sandbox: [
    ...['serve', 'links', 'pay', 'complete', 'refund', 'dispute', 'win', 'expire', 'disable', 'enable', 'events'],
    ...['deliveries', 'resend', 'clock', 'faults', 'silences', 'play', 'help'],
  ],
};

/** The first words of commands with what they do; groups name what they begin. */
function firstWords({ commands, programs }: Known): Word[] {
  const firsts = [...new Set(commands.map(({ name }) => name.split(' ', 1)[0] as string))];
  const words = firsts.map((first): Word => {
    const exact = commands.find(({ name }) => name === first);
    const seconds = secondWords(commands, first).map(([second]) => second);
    return [first, exact?.about ?? seconds.join(', ')];
  });
  return [...words, ...Object.entries(programs)];
}

function secondWords(commands: readonly Command[], first: string): Word[] {
  const ofProgram = (WORDS_OF_PROGRAMS[first] ?? []).map((word): Word => [word, '']);
  const ofCommands = commands.flatMap(({ name, about }): Word[] => {
    const [one, two] = name.split(' ');
    return one === first && two !== undefined ? [[two, about]] : [];
  });
  return [...ofProgram, ...ofCommands];
}

function groupsOf(known: Known): [string, Word[]][] {
  return firstWords(known).flatMap(([first]): [string, Word[]][] => {
    const seconds = secondWords(known.commands, first);
    return seconds.length === 0 ? [] : [[first, seconds]];
  });
}

const listed = (words: readonly Word[]) => words.map(([word]) => word).join(' ');
const entriesOf = (options: Options): [string, Option][] => Object.entries(options);

/** What may stand at the place of the argument. */
function argumentsOf({ name, positionals }: Command): { words: readonly string[]; isPath: boolean } {
  const isPath = PATHS.has(positionals);
  return { words: name === 'completion' ? SHELLS : [], isPath };
}

/** The first word that begins a command is the command: what stands before it are options and their values. */
function bashLines(known: Known): string[] {
  const { commands } = known;
  const valuesOf = (name: string, options: Options) =>
    entriesOf(options).flatMap(([option, { value = '', choices }]) => {
      const key = `    '${name} --${option}')`;
      if (choices !== undefined) return [`${key} words='${choices.join(' ')}' ;;`];
      if (PATHS.has(value)) return [`${key} files=1 ;;`];
      return value === '' ? [] : [`${key} none=1 ;;`];
    });
  const optionsWord = (options: Options) =>
    Object.keys(options)
      .map((option) => `--${option}`)
      .join(' ');
  return [
    '# Completion of settled for bash: source <(settled completion bash)',
    '_settled() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} i word first= second= key words= options= files= none=',
    '  # Bash takes "=" for a word of its own.',
    '  if [[ $cur == "=" ]]; then cur=; elif [[ $prev == "=" ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi',
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    '    word=${COMP_WORDS[i]}',
    '    if [[ -n $first && $word != -* ]]; then second=$word; break; fi',
    `    case $word in ${firstWords(known)
      .map(([word]) => word)
      .join('|')}) first=$word ;; esac`,
    '  done',
    '  key=$first',
    '  case "$first $second" in',
    `    ${commands.flatMap(({ name }) => (name.includes(' ') ? [`'${name}'`] : [])).join('|')}) key="$first $second" ;;`,
    '  esac',
    '  case "$key $prev" in',
    ...commands.flatMap((command) => valuesOf(command.name, optionsOf(command))),
    ...valuesOf('', LEADING_OPTIONS),
    '  esac',
    '  if [[ -z $words$files$none ]]; then',
    '    case $key in',
    `      '') words='${listed(firstWords(known))}' options='${optionsWord(LEADING_OPTIONS)}' ;;`,
    ...commands.map((command) => {
      const argument = argumentsOf(command);
      const all = [...secondWords(commands, command.name).map(([second]) => second), ...argument.words].join(' ');
      const files = argument.isPath ? ' files=1' : '';
      return `      '${command.name}') words='${all}' options='${optionsWord(optionsOf(command))}'${files} ;;`;
    }),
    ...groupsOf(known)
      .filter(([first]) => !commands.some(({ name }) => name === first))
      .map(([first, seconds]) => `      ${first}) [[ -z $second ]] && words='${listed(seconds)}' ;;`),
    '    esac',
    '    case $key$second in',
    `      help) words='${listed(firstWords(known))}' ;;`,
    ...groupsOf(known).map(([first, seconds]) => `      help${first}) words='${listed(seconds)}' ;;`),
    '    esac',
    '  fi',
    '  # Options for who begins one, or if nothing else can stand there.',
    '  [[ $cur == -* || -z $words$files ]] && words+=" $options"',
    '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
    '  [[ -n $files ]] || return',
    '  # Names of files may have spaces in them; only they are quoted, and folders among them get a slash.',
    "  local IFS=$'\\n'",
    '  compopt -o filenames 2> /dev/null',
    '  COMPREPLY+=($(compgen -f -- "$cur"))',
    '}',
    'complete -F _settled settled',
  ];
}

/** Text in single quotes, for zsh and fish alike. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

function zshLines(known: Known): string[] {
  const { commands } = known;
  const pairs = (list: readonly Word[]) =>
    list.map(([word, about]) => quoted(about === '' ? word : `${word}:${about}`)).join(' ');
  // These have a meaning in the specifications of _arguments.
  const told = (text: string) => text.replace(/[[\]:\\]/g, '\\$&');
  const specOf = ([option, { value, choices, about }]: [string, Option]): string => {
    const said = `[${told(about)}]`;
    if (value === undefined) return quoted(`--${option}${said}`);
    const action = choices !== undefined ? `(${choices.join(' ')})` : PATHS.has(value) ? '_files' : '()';
    return quoted(`--${option}=${said}:${told(value)}:${action}`);
  };
  const specsOf = (options: Options) => entriesOf(options).map(specOf).join(' ');
  const argumentsSpec = (command: Command): string => {
    const { words, isPath } = argumentsOf(command);
    const action = words.length > 0 ? `(${words.join(' ')})` : isPath ? '_files' : '()';
    return command.positionals === '' ? '' : ` ${quoted(`*:${told(command.positionals)}:${action}`)}`;
  };
  return [
    '#compdef settled',
    '# Completion of settled for zsh: source <(settled completion zsh)',
    '_settled() {',
    '  local curcontext="$curcontext" state line key of',
    '  local -a firsts seconds',
    '  local -i at=2 skip=1',
    `  firsts=(${pairs(firstWords(known))})`,
    '  while (( at < CURRENT )) && [[ -z "${firsts[(r)$words[at]:*]}" ]]; do (( at++ )); done',
    '  if (( at == CURRENT )); then',
    `    _arguments -C ${specsOf(LEADING_OPTIONS)} '*: :->command'`,
    '    [[ "$state" == command ]] && _describe command firsts',
    '    return',
    '  fi',
    '  words=("$words[1]" "${(@)words[at,-1]}")',
    '  (( CURRENT -= at - 2 ))',
    '  key="$words[2]" of="$words[2]"',
    '  if [[ "$key" == help ]]; then of="$words[3]"; fi',
    '  case "$of" in',
    ...groupsOf(known).map(([first, seconds]) => `    ${first}) seconds=(${pairs(seconds)}) ;;`),
    '  esac',
    '  if [[ "$key" == help ]]; then',
    '    if (( CURRENT == 3 )); then _describe command firsts && return; fi',
    '    if (( CURRENT == 4 )); then _describe command seconds && return; fi',
    '  elif (( CURRENT == 3 && ${#seconds} )); then _describe command seconds && return; fi',
    '  if (( ${#seconds} )) && [[ -n "${seconds[(r)$words[3]:*]}" ]]; then key="$words[2] $words[3]" skip=2; fi',
    '  words=("$words[1]" "${(@)words[skip+2,-1]}")',
    '  (( CURRENT -= skip ))',
    '  case "$key" in',
    ...commands.map((command) => {
      return `    ${quoted(command.name)}) _arguments ${specsOf(optionsOf(command))}${argumentsSpec(command)} ;;`;
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
  const twoWords = groupsOf(known).flatMap(([first, seconds]) => seconds.map(([second]) => told(`${first} ${second}`)));
  const optionLine = (name: string, [option, { value, choices, about }]: [string, Option]): string => {
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
    `  while set -q given[1]; and not contains -- $given[1] ${listed(firstWords(known))}`,
    '    set -e given[1]',
    '  end',
    '  set -l key "$given[1]"',
    `  contains -- "$given[1] $given[2]" ${twoWords.join(' ')}; and set key "$given[1] $given[2]"`,
    '  test "$key" = help; and set key (string join " " $given[1..3])',
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
        ([second, about]) =>
          `complete -c settled -n ${told(`__settled_is '${first}'; or __settled_is 'help ${first}'`)} -a ${told(second)} -d ${told(about)}`,
      ),
    ),
    ...entriesOf(LEADING_OPTIONS).map((option) => optionLine('', option)),
    ...commands.flatMap((command) => {
      const { words, isPath } = argumentsOf(command);
      const argument = `complete -c settled -n ${told(`__settled_is '${command.name}'`)}`;
      return [
        ...entriesOf(optionsOf(command)).map((option) => optionLine(command.name, option)),
        ...(words.length > 0 ? [`${argument} -a ${told(words.join(' '))}`] : []),
        ...(isPath ? [`${argument} -F`] : []),
      ];
    }),
  ];
}
