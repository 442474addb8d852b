// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the scripts are the shells' own
import { argumentOf, COMMON_OPTIONS, type Options } from './command.ts';
import { commandsOf, findCommand, furtherOptions, type Program, secondWords } from './program.ts';

/** What may stand at a place of a command line, and the scripts by which shells ask for it when Tab is pressed. */

export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** What can complete the last of these words, which follow the program's name. For nothing, shells complete names of files. */
export function completions<A>(program: Program<A>, typed: readonly string[]): string[] {
  // Bash takes "=" for a word of its own.
  const before = typed.slice(0, -1).filter((word) => word !== '=');
  const current = typed.at(-1)?.replace(/^=$/, '') ?? '';
  const fitting = (found: readonly string[]) => found.filter((one) => one.startsWith(current));
  const commands = commandsOf(program);
  const firsts = [...commands.map(({ name }) => name.split(' ', 1)[0] as string), ...Object.keys(program.programs)];
  const isHelp = before[0] === 'help';
  const words = before.slice(isHelp ? 1 : 0);
  const command = findCommand(program, before);
  const options: Options =
    command === undefined
      ? { ...program.options, ...COMMON_OPTIONS }
      : { ...command.options, ...furtherOptions(program, command) };
  const option = options[/^--(.*)/.exec(before.at(-1) ?? '')?.[1] ?? ''];
  if (option?.value !== undefined) return fitting(option.choices ?? []);
  const flags = Object.keys(options).map((name) => `--${name}`);
  if (current.startsWith('-')) return fitting(flags);
  if (words.length === 0) return fitting([...new Set(firsts)]);
  const seconds = words.length === 1 ? secondWords(program, words[0] as string) : [];
  if (isHelp || command === undefined) return fitting(seconds);
  const values = [...seconds, ...(command.choices ?? [])];
  return fitting(values.length === 0 && argumentOf(command as never) === '' ? flags : values);
}

/** For each shell the script that lets it complete `settled`, in lines. */
export const COMPLETION_SCRIPTS: Readonly<Record<(typeof SHELLS)[number], readonly string[]>> = {
  bash: [
    '_settled() { local IFS=$\'\\n\'; COMPREPLY=($(settled __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)); }',
    'complete -o default -F _settled settled',
  ],
  zsh: [
    '_settled() { compadd -- ${(f)"$(settled __complete "${(@)words[2,CURRENT]}" 2> /dev/null)"} || _files }',
    'compdef _settled settled',
  ],
  fish: [
    'function __settled_complete',
    '  set -l words (commandline -opc) (commandline -ct)',
    '  settled __complete $words[2..] 2> /dev/null | string match -r .+; or __fish_complete_path (commandline -ct)',
    'end',
    "complete -c settled -f -a '(__settled_complete)'",
  ],
};
