import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMPILE_CACHE, MAIN } from '../../prove/harness/settled.ts';
import { COMMANDS, SETTLED } from '../../src/cli/commands.ts';
import { completions } from '../../src/terminal/completion.ts';
import { furtherOptions } from '../../src/terminal/program.ts';
import { testFolder } from '../support/app.ts';
import { runSettled } from '../support/process.ts';

const offered = (...typed: string[]) => completions(SETTLED, typed);

describe('completion: what may stand at a place', () => {
  it.each<[string[], string[]]>([
    [['ord'], ['orders']],
    [['sand'], ['sandbox']],
    [['orders', 'li'], ['list']],
    [['help', 'rej'], ['rejections']],
    [['help', 'orders', 'li'], ['list']],
    [['attention', 'en'], ['end']],
    [['attention', '--exit'], ['--exit-code']],
    [['events', 'show', '3', '--js'], ['--json']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['orders', 'list', '--at', 'http', ':', '//a', '--st'], ['--state']],
    [['orders', 'list', '--state', 'awa'], ['awaiting_payment']],
    [['orders', 'list', '--state', '=', 'hel'], ['held']],
    [['orders', 'list', '--limit', ''], []],
    [['drill', 'a-b'], []],
    [['verify', '--body', 'a-b'], []],
    [['frobnicate', 'x'], []],
  ])('%j', (typed, found) => {
    expect(offered(...typed).slice(0, Math.max(1, found.length))).toEqual(found);
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))('every option of %s', (name, command) => {
    const options = Object.keys({ ...command.options, ...furtherOptions(SETTLED, command) });
    expect(offered(...name.split(' '), '--')).toEqual(options.map((option) => `--${option}`));
  });
});

/** What is typed, and what the shell makes of it when Tab is pressed. */
const TYPED = [
  ['settled ord', 'settled orders '],
  ['settled orders list --state awa', 'settled orders list --state awaiting_payment '],
  ['settled attention --exit', 'settled attention --exit-code '],
  ['settled drill a-ba', 'settled drill a-backup.db '],
  ['settled orders show --at http://a --js', 'settled orders show --at http://a --json '],
] as const;

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Runs a script in a real shell, in a folder with `settled`, the completion and two files to complete; its lines. */
async function inShell(shell: string, script: string, args: readonly string[] = []): Promise<string[]> {
  const folder = testFolder();
  writeFileSync(join(folder, 'completion'), (await runSettled(['completion', shell])).stdout);
  for (const file of ['a-backup.db', 'b $(touch ran).db']) writeFileSync(join(folder, file), '');
  const program = join(folder, 'settled');
  writeFileSync(program, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(MAIN)} "$@"\n`);
  chmodSync(program, 0o755);
  const { stdout, stderr, status } = spawnSync(shell, [...args, '-c', `${script}\nls`], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...{ PATH: `${folder}:${process.env.PATH}`, HOME: folder, TERM: 'dumb', LANG: 'C.UTF-8' },
      NODE_COMPILE_CACHE: COMPILE_CACHE,
    },
    timeout: 60_000,
  });
  expect([stderr, status, stdout.includes('\nran\n')]).toEqual(['', 0, false]);
  return stdout.split('\n');
}

describe('completion: in a shell', () => {
  const notIn = (shell: string) => spawnSync(shell, ['-c', 'true']).status !== 0;

  it('bash completes words and values, also behind an equals sign, and leaves files to its own way', async () => {
    const offer = (words: string, at: number) =>
      `COMP_WORDS=(${words}); COMP_CWORD=${at}; COMPREPLY=(); _settled; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const lines = TYPED.map(([typed]) => offer(typed, typed.split(' ').length - 1));
    const more = [offer('settled orders list --state = held', 5), 'complete -p settled'];
    const words = TYPED.map(([, made]) => (made.includes('drill') ? '' : made.trimEnd().split(' ').at(-1)));
    const found = await inShell('bash', ['source ./completion', ...lines, ...more].join('\n'));
    const expected = [...words, 'held', 'complete -o default -F _settled settled'];
    expect(found.slice(0, expected.length)).toEqual(expected);
  });

  it.skipIf(notIn('fish'))('fish, if it is installed, completes words, values and files', async () => {
    const offer = ([typed]: readonly string[]) =>
      `set -l offered (complete -C ${quoted(typed as string)} | string replace -r '\\t.*' ''); echo "$offered"`;
    const found = await inShell('fish', ['source ./completion', ...TYPED.map(offer)].join('\n'), ['--no-config']);
    expect(found.slice(0, TYPED.length)).toEqual(TYPED.map(([, made]) => made.trimEnd().split(' ').at(-1)));
  });

  it.skipIf(notIn('zsh'))('zsh, if it is installed, completes what is typed at its prompt', async () => {
    const begin = [
      'PS1=; autoload -U compinit; compinit -u -d ./dump; source ./completion; bindkey "^I" complete-word',
      'show() { zle -I; print -r -- "GOT<$BUFFER>"; BUFFER=; }; zle -N show; bindkey "^T" show; print REA""DY',
    ].join('; ');
    const script = [
      `zmodload zsh/zpty; zpty z 'zsh -f -i'; zpty -w z ${quoted(begin)}; zpty -r z out '*READY*'`,
      `ask() { zpty -w -n z "$1"$'\\t\\x14'; zpty -r z out '*GOT<*>*'; print -r -- "\${\${out##*GOT<}%%>*}"; }`,
      ...TYPED.map(([typed]) => `ask ${quoted(typed)}`),
    ].join('\n');
    expect((await inShell('zsh', script, ['-f'])).slice(0, TYPED.length)).toEqual(TYPED.map(([, made]) => made));
  });
});
