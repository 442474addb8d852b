import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { COMMANDS as SANDBOX_COMMANDS } from '../../sandbox/cli/commands.ts';
import { optionsOf } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commands.ts';
import { WORDS_OF_PROGRAMS } from '../../src/cli/completion.ts';
import { testFolder } from '../support/app.ts';
import { runSettled } from '../support/process.ts';

/** What is typed, and what the shell makes of it when Tab is pressed. */
const TYPED = [
  ['settled ord', 'settled orders '],
  ['settled orders li', 'settled orders list '],
  ['settled orders list --state awa', 'settled orders list --state awaiting_payment '],
  ['settled attention en', 'settled attention end '],
  ['settled attention --exit', 'settled attention --exit-code '],
  ['settled help rej', 'settled help rejections '],
  ['settled completion zs', 'settled completion zsh '],
  ['settled stats --js', 'settled stats --json '],
  ['settled events show 3 --js', 'settled events show 3 --json '],
  ['settled sand', 'settled sandbox '],
  ['settled drill a-ba', 'settled drill a-backup.db '],
  ['settled verify --body a-b', 'settled verify --body a-backup.db '],
  ['settled --json orders li', 'settled --json orders list '],
  ['settled --color never orders li', 'settled --color never orders list '],
  ['settled --at http://a orders li', 'settled --at http://a orders list '],
  ['settled --color nev', 'settled --color never '],
  ['settled help orders li', 'settled help orders list '],
  ['settled sandbox cl', 'settled sandbox clock '],
  ['settled stats --tok', 'settled stats --token-file'],
] as const;

/** Runs a script in a real shell, in a folder with the completion and a file to complete; its lines. */
function inShell(program: string, script: string, args: readonly string[] = []): string[] {
  const { stdout, stderr, status } = spawnSync(program, [...args, '-c', script], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: folder, TERM: 'dumb', LANG: 'C.UTF-8' },
    timeout: 60_000,
  });
  expect([stderr, status]).toEqual(['', 0]);
  return stdout.trimEnd().split('\n');
}

let folder: string;
beforeEach(({ skip, task }) => {
  const shell = /^(?:bash|zsh|fish)/.exec(task.name)?.[0] ?? '';
  if (shell === '') return;
  const isThere = spawnSync(shell, ['-c', 'true']).status === 0;
  skip(!isThere, `${shell} is not installed, and its completion is tried in it: apt-get install ${shell}`);
});

async function completionIn(shell: string): Promise<void> {
  folder = testFolder();
  const { code, stdout, stderr } = await runSettled(['completion', shell]);
  expect([code, stderr]).toEqual([0, '']);
  writeFileSync(join(folder, 'completion'), stdout);
  writeFileSync(join(folder, 'a-backup.db'), '');
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** What a shell must offer for an option of each command that begins with two dashes. */
const OPTIONS = COMMANDS.map((command) => [
  command.name,
  Object.keys(optionsOf(command))
    .map((name) => `--${name}`)
    .sort()
    .join(' '),
]);

describe('cli: completion', () => {
  it('bash completes words, options, values and files, and every option of every command', async () => {
    await completionIn('bash');
    const complete = `
      source ./completion
      offer() {
        read -ra COMP_WORDS <<< "$1"; [[ $1 == *" " ]] && COMP_WORDS+=("")
        COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); COMPREPLY=(); _settled; echo "\${COMPREPLY[*]}"
      }`;
    const lines = (typed: readonly string[]) =>
      inShell('bash', [complete, ...typed.map((one) => `offer ${quoted(one)}`)].join('\n'));
    const offered = lines(TYPED.map(([typed]) => typed));
    const words = TYPED.map(([, made]) => made.trimEnd().split(' ').at(-1));
    expect(offered).toEqual(words);
    const options = lines(COMMANDS.map(({ name }) => `settled ${name} --`));
    const sorted = options.map((line) => line.split(' ').sort().join(' '));
    expect(COMMANDS.map(({ name }, at) => [name, sorted[at]])).toEqual(OPTIONS);
  });

  it('bash offers options only to who begins one, and takes no word for a folder of its name', async () => {
    await completionIn('bash');
    const words = (typed: string) => `COMP_WORDS=(settled ${typed} ''); COMP_CWORD=2; COMPREPLY=(); _settled`;
    const script = ['source ./completion', words('completion'), `echo "\${COMPREPLY[*]}"`, 'complete -p settled'];
    expect(inShell('bash', script.join('\n'))).toEqual(['bash zsh fish', 'complete -F _settled settled']);
  });

  it('knows the commands of the sandbox', () => {
    expect(WORDS_OF_PROGRAMS.sandbox).toEqual(SANDBOX_COMMANDS.map(({ name }) => name));
  });

  it('bash completes a value behind an equals sign, which it takes for a word', async () => {
    await completionIn('bash');
    const words = 'COMP_WORDS=(settled orders list --state = held); COMP_CWORD=5; COMPREPLY=(); _settled';
    expect(inShell('bash', `source ./completion; ${words}; echo "\${COMPREPLY[*]}"`)).toEqual(['held']);
  });

  it('bash completes a file of any name as one word, and runs nothing of it', async () => {
    await completionIn('bash');
    writeFileSync(join(folder, 'b $(touch ran).db'), '');
    const words = 'COMP_WORDS=(settled drill b); COMP_CWORD=2; COMPREPLY=(); _settled';
    const script = `source ./completion; ${words}; printf '%s\\n' "\${COMPREPLY[@]}"; ls`;
    expect(inShell('bash', script)).toEqual(['b $(touch ran).db', 'a-backup.db', 'b $(touch ran).db', 'completion']);
  });

  it('fish completes words, options, values and files, and every option of every command', async () => {
    await completionIn('fish');
    const offer = (typed: string) =>
      `set -l offered (complete -C ${quoted(typed)} | string replace -r '\\t.*' ''); echo "$offered"`;
    const lines = (typed: readonly string[]) =>
      inShell('fish', ['source ./completion', ...typed.map(offer)].join('\n'), ['--no-config']);
    const offered = lines(TYPED.map(([typed]) => typed));
    expect(offered).toEqual(TYPED.map(([, made]) => made.trimEnd().split(' ').at(-1)));
    const options = lines(COMMANDS.map(({ name }) => `settled ${name} --`));
    const sorted = options.map((line) => line.split(' ').sort().join(' '));
    expect(COMMANDS.map(({ name }, at) => [name, sorted[at]])).toEqual(OPTIONS);
  });

  it('zsh completes what is typed at its prompt', async () => {
    await completionIn('zsh');
    const begin = [
      'PS1=; autoload -U compinit; compinit -u -d ./dump; source ./completion; bindkey "^I" complete-word',
      'show() { zle -I; print -r -- "GOT<$BUFFER>"; BUFFER=; }; zle -N show; bindkey "^T" show; print REA""DY',
    ].join('; ');
    const script = [
      `zmodload zsh/zpty; zpty z 'zsh -f -i'; zpty -w z ${quoted(begin)}; zpty -r z out '*READY*'`,
      `ask() { zpty -w -n z "$1"$'\\t\\x14'; zpty -r z out '*GOT<*>*'; print -r -- "\${\${out##*GOT<}%%>*}"; }`,
      ...TYPED.map(([typed]) => `ask ${quoted(typed)}`),
    ].join('\n');
    const made = TYPED.map(([, line]) => (line.endsWith('--token-file') ? `${line}=` : line));
    expect(inShell('zsh', `${script}\nprint -r -- END`, ['-f'])).toEqual([...made, 'END']);
  });

  it('names the shells that it knows', async () => {
    const { code, stderr } = await runSettled(['completion', 'powershell']);
    expect([code, stderr]).toEqual([
      64,
      'settled: There is no completion for "powershell". There is one for: bash, zsh, fish.\n',
    ]);
  });
});
