// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the scripts are the shells' own
import { argumentOf, COMMON_OPTIONS, type Options } from './command.ts';
import { commandsOf, findCommand, furtherOptions, type Program, secondWords } from './program.ts';

/** What may stand at a place of a command line, and the scripts by which shells ask for it when Tab is pressed. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** Stands for the names of files, which shells know better how to complete. */
const FILES = ':files';
/** Arguments and values that are paths. */
const PATHS: ReadonlySet<string> = new Set(['FILE', 'FOLDER', 'BACKUP']);

/**
 * What can complete the last of these words, which follow the program's name: each with what it does, behind a tab. The
 * first word that begins a command is the command: what stands before it are options and their values.
 */
export function completions<A>(program: Program<A>, typed: readonly string[]): string[] {
  const { before, current, prefix } = wordsOf(typed);
  const commands = commandsOf(program);
  const firsts = new Set([
    ...commands.map(({ name }) => name.split(' ', 1)[0] as string),
    ...Object.keys(program.programs),
  ]);
  const at = before.findIndex((word) => firsts.has(word));
  const isHelp = before[at] === 'help';
  const words = at < 0 ? [] : before.slice(isHelp ? at + 1 : at);
  const command = at < 0 ? undefined : findCommand(program, before.slice(at));
  const options: Options =
    command === undefined
      ? { ...program.options, ...COMMON_OPTIONS }
      : { ...command.options, ...furtherOptions(program, command) };
  const valued = options[before.at(-1)?.replace(/^--/, '') ?? ''];
  const fitting = (found: readonly string[]) =>
    found.filter((one) => one === FILES || one.startsWith(current)).map((one) => (one === FILES ? one : prefix + one));
  if (before.at(-1)?.startsWith('--') && valued?.value !== undefined) {
    return fitting(valued.choices ?? (PATHS.has(valued.value) ? [FILES] : []));
  }
  const flags = Object.entries(options).map(([name, { about }]) => `--${name}\t${about}`);
  if (current.startsWith('-')) return fitting(flags);
  const firstWords = () => [...firsts].map((first) => `${first}\t${aboutOf(program, first)}`);
  if (words.length === 0) return fitting(firstWords());
  const seconds = words.length === 1 ? secondWords(program, words[0] as string) : [];
  const named = seconds.map((second) => `${second}\t${aboutOf(program, `${words[0]} ${second}`)}`);
  if (isHelp || command === undefined) return fitting(named);
  const values = command.choices ?? (PATHS.has(argumentOf(command as never)) ? [FILES] : []);
  // Options for who begins one, or if nothing else can stand there.
  return fitting(named.length + values.length === 0 ? flags : [...named, ...values]);
}

/** Bash takes "=" for a word of its own; others write an option and its value as one. */
function wordsOf(typed: readonly string[]): { before: string[]; current: string; prefix: string } {
  const before = typed.slice(0, -1).filter((word) => word !== '=');
  const last = typed.at(-1) ?? '';
  const [, option, value = ''] = /^(--[a-z-]+)=(.*)$/s.exec(last) ?? [];
  if (option !== undefined) return { before: [...before, option], current: value, prefix: `${option}=` };
  return { before, current: last === '=' ? '' : last, prefix: '' };
}

/** What a command does; of a first word alone, what it begins. */
function aboutOf<A>(program: Program<A>, name: string): string {
  const exact = commandsOf(program).find((command) => command.name === name);
  return exact?.about ?? program.programs[name] ?? secondWords(program, name).join(', ');
}

const about = (shell: string) => `# Completion of settled for ${shell}: see settled help completion`;

/** For each shell the script that lets it complete `settled`, in lines. */
export const COMPLETION_SCRIPTS: Readonly<Record<(typeof SHELLS)[number], readonly string[]>> = {
  bash: [
    about('bash'),
    '_settled() {',
    '  local cur=${COMP_WORDS[COMP_CWORD]} word about',
    '  [[ $cur == "=" ]] && cur=',
    "  while IFS=$'\\t' read -r word about; do",
    `    if [[ $word != ${FILES} ]]; then COMPREPLY+=("$word"); continue; fi`,
    "    local IFS=$'\\n'",
    '    compopt -o filenames 2> /dev/null',
    '    COMPREPLY+=($(compgen -f -- "$cur"))',
    '  done < <(settled __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)',
    '}',
    'complete -F _settled settled',
  ],
  zsh: [
    '#compdef settled',
    about('zsh'),
    '_settled() {',
    '  local line',
    '  local -a found',
    '  for line in "${(@f)$(settled __complete "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do',
    `    if [[ "$line" == ${FILES} ]]; then _files`,
    '    elif [[ -n "$line" ]]; then found+=("${${line%%$\'\\t\'*}//:/\\\\:}:${line#*$\'\\t\'}"); fi',
    '  done',
    '  (( ${#found} )) && _describe -V settled found',
    '}',
    '# Sourced, or loaded by compinit from a folder of fpath.',
    'if [[ "$funcstack[1]" == _settled ]]; then _settled "$@"; else compdef _settled settled; fi',
  ],
  fish: [
    about('fish'),
    'function __settled_complete',
    '  set -l words (commandline -opc) (commandline -ct)',
    '  for line in (settled __complete $words[2..] 2> /dev/null)',
    `    test "$line" = ${FILES}; and __fish_complete_path (commandline -ct); or echo $line`,
    '  end',
    'end',
    "complete -c settled -f -a '(__settled_complete)'",
  ],
};
