import { describe, expect, it } from 'vitest';

import { COMMANDS, SETTLED } from '../../src/cli/commands.ts';
import { EXIT, EXIT_MEANINGS } from '../../src/cli/exit.ts';
import { readArguments } from '../../src/terminal/command.ts';
import { helpOn } from '../../src/terminal/help.ts';
import { shownLines } from '../../src/terminal/output.ts';
import { furtherOptions } from '../../src/terminal/program.ts';
import { runSettled, spawnSettled } from '../support/process.ts';
import { failing, misunderstood } from './settled.ts';

const command = (name: string) => COMMANDS.find((one) => one.name === name) as (typeof COMMANDS)[number];
const read = (name: string, ...args: string[]) => {
  const asked = command(name);
  const known = { ...asked.options, ...furtherOptions(SETTLED, asked) };
  return readArguments({ command: asked as never, title: `settled ${name}`, known }, args);
};

describe('cli: the command line', () => {
  it('without a command: is help', async () => {
    const [end, help] = await Promise.all([spawnSettled([], {}).finished, runSettled(['help'])]);
    expect(end).toMatchObject({ code: EXIT.ok, stdout: help.stdout, stderr: '' });
    expect(JSON.parse((await runSettled(['--json'])).stdout).commands).toHaveLength(COMMANDS.length);
  });

  it('with an unknown command: leads to help', async () => {
    const error = await failing(['frobnicate']);
    expect(error).toMatchObject({ code: 'usage', exit: EXIT.usage });
    expect(error.message).toBe('There is no command "frobnicate". See: settled help');
  });

  it.each([
    [['notice', 'list'], '`settled notices list`'],
    [['ordrs', 'lst'], '`settled orders list`'],
    [['orders', 'lst'], '`settled orders list`'],
    [['list', 'orders'], '`settled orders list`'],
    [['attention', 'ned', '3'], '`settled attention end`'],
    [['wyh', 'order-1'], '`settled why`'],
    [['sandbx'], '`settled sandbox`'],
    [['recon'], '`settled reconcile`'],
    [['help', 'doctr'], '`settled doctor`'],
    [['events', 'list', '--stat', 'dead'], '`--status`'],
    [['stats', '--josn'], '`--json`'],
    [['stats', '--jsno'], '`--json`'],
    [['orders', 'list', '--state', 'piad'], 'paid'],
    [['completion', 'bsh'], 'bash'],
  ])('%j: names what was meant', async (args, meant) => {
    expect(await misunderstood(args)).toContain(` Did you mean ${meant}? `);
  });

  it('with a command that a terminal would obey: escapes it', async () => {
    const { message } = await failing(['\u009b31m']);
    expect(message).toContain('no command "\u009b31m"');
  });

  it('with the first word of a command: lists the second words', async () => {
    const names = COMMANDS.map(({ name }) => `settled ${name}`).filter((name) => name.startsWith('settled orders '));
    const list = `There are: ${names.join(', ')}.`;
    expect(await misunderstood(['orders'])).toBe(`\`settled orders\` needs one more word. ${list}`);
    expect(await misunderstood(['orders', 'delete'])).toBe(`There is no command \`settled orders delete\`. ${list}`);
  });

  it('with an option that is nearly right: names that one, and no others', async () => {
    expect(await misunderstood(['events', 'list', '--statsu', 'dead'])).toBe(
      '`settled events list` has no option --statsu. Did you mean `--status`? See: settled events list --help',
    );
  });

  it('with an unknown option: lists the options', async () => {
    expect(await misunderstood(['events', 'list', '--shade', 'red'])).toBe(
      '`settled events list` has no option --shade. It has: --status, --order, --since, --until, ' +
        '--type, --outcome, --limit, --all, --count, --at, --token-file, --allow-http, --json, --help.',
    );
  });

  it('takes --json before the command as well', async () => {
    const asked = [
      ['--json', '--version'],
      ['version', '--json'],
    ];
    const ends = await Promise.all(asked.map((args) => runSettled(args)));
    const data = { version: expect.stringMatching(/^\d+\.\d+\.\d+/), node: process.version };
    expect(ends.map(({ stdout }) => JSON.parse(stdout))).toEqual([data, data]);
    expect(await misunderstood(['--at', 'x', 'stats'])).toMatch(/ Options stand behind the command\./);
  });
});

describe('cli: a command that does not finish', () => {
  it('is a bug, not a success', async () => {
    const nothingIsWritten = '--import=data:text/javascript,process.stdout.write=()=>true';
    const end = await spawnSettled(['--version'], { NODE_OPTIONS: nothingIsWritten }).finished;
    expect(end.code).toBe(EXIT.bug);
    expect(end.stderr).toContain('This is a bug in settled. Please report it.\nError: the command did not finish');
  });
});

describe('cli: help', () => {
  it('names every command and every exit code', async () => {
    const { stdout, code } = await runSettled(['help']);
    expect(code).toBe(EXIT.ok);
    for (const { name, positionals } of COMMANDS) expect(stdout).toContain(`settled ${name} ${positionals}`.trim());
    for (const [exit, meaning] of Object.entries(EXIT_MEANINGS)) {
      expect(stdout).toContain(`\n  ${exit.padStart(2)}  ${meaning}\n`);
    }
    expect(Math.max(...stdout.split('\n').map((line) => line.length))).toBeLessThanOrEqual(120);
  });

  it('on one command, however it is asked for: names its options', async () => {
    const ends = await Promise.all([
      runSettled(['help', 'orders', 'list']),
      runSettled(['orders', 'list', '--help']),
      runSettled(['orders', 'list', '-h', '--limit', 'x']),
    ]);
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1);
    expect(ends[0]?.stdout).toMatch(
      /Usage: settled orders list \[OPTION\.\.\.\]\n\n +--q TEXT [\s\S]*\n +--state STATE .*awaiting_payment/,
    );
  });

  it('says which options a command needs', () => {
    const needed = shownLines(helpOn(SETTLED, ['links', 'add']).lines).filter((line) => line.endsWith('; needed'));
    expect(needed.map((line) => line.trim().split(' ')[0])).toEqual(['--amount', '--id']);
  });
});

describe('cli: examples in help', () => {
  const examples = COMMANDS.flatMap(({ name, examples = [] }) => examples.map((line) => [line, name] as const));

  it.each(examples)('%s can be typed as it is', (line, name) => {
    const [program, ...words] = [...(line.split(' | ')[0] ?? '').matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(
      ([, single, double, bare]) => single ?? double ?? bare ?? '',
    );
    expect(program).toBe('settled');
    expect(words.slice(0, name.split(' ').length).join(' ')).toBe(name);
    expect(() => read(name, ...words.slice(name.split(' ').length))).not.toThrow();
  });
});

describe('cli: arguments', () => {
  it('reads options before, between and after the positionals', () => {
    expect(read('events replay', '--json', '1', '--at=a', '2', '--token-file', 'f')).toEqual({
      positionals: ['1', '2'],
      options: { json: true, at: 'a', 'token-file': 'f' },
    });
  });

  it('takes what follows -- as it is, and a value that begins with a dash, or after = with two', () => {
    expect(read('orders show', '--', '--json')).toEqual({ positionals: ['--json'], options: {} });
    expect(read('orders list', '--q=--x').options).toEqual({ q: '--x' });
    expect(read('orders list', '--q', '-x').options).toEqual({ q: '-x' });
    expect(read('verify', '--body', '-').options).toEqual({ body: '-' });
  });

  it.each<[string, string[], RegExp]>([
    ['orders show', [], /needs REFERENCE\. Usage: settled orders show REFERENCE/],
    ['orders open', [], /needs REFERENCE\. Usage: settled orders open REFERENCE --title TEXT --amount AMOUNT$/],
    ['orders show', [''], /REFERENCE must not be empty/],
    ['orders show', ['a', 'b'], /takes one REFERENCE, so "b" is too much/],
    ['stats', ['a'], /takes no argument, so "a" is too much/],
    ['orders list', ['--limit'], /--limit needs a value: --limit N/],
    ['orders list', ['--q', '--all'], /--q needs a value, and --all looks like an option/],
    ['orders list', ['--q', '-h'], /--q needs a value, and -h looks like an option/],
    ['orders list', ['--all=yes'], /--all is a switch/],
    ['orders list', ['--q', 'a', '--q', 'b'], /--q is given twice/],
    ['orders list', ['--state', 'payed'], /--state is "payed"\. Choose one of: awaiting_payment, .*paid/],
    ['orders list', ['-x'], /no option -x/],
    ['orders list', ['--constructor'], /no option --constructor/],
  ])('%s %j is refused', (name, args, message) => {
    expect(() => read(name, ...args)).toThrow(message);
  });

  it.each<[string[], RegExp]>([
    [['orders', 'list', '--limit', '0'], /--limit is "0"\. Write a whole number from 1 on/],
    [['orders', 'resolve', 'a', '--reason', 'x'], /either --accept or --reject/],
    [['orders', 'resolve', 'a', '--accept', '--reject', '--reason', 'x'], /either --accept or --reject/],
    [['orders', 'resolve', 'a', '--accept'], /needs --reason/],
    [['links', 'reserve', 'a'], /needs --amount/],
    [['orders', 'open', 'a'], /needs --title TEXT and --amount AMOUNT\.$/],
    [['orders', 'open', 'a', '--amount', '30'], /needs --title/],
    [['orders', 'open', 'a', '--title', 'A'], /needs --amount/],
    [['orders', 'open', '--title', 'A', '--amount', '30'], /needs REFERENCE/],
    [['orders', 'open', 'o', '--title', 'A', '--amount', '30', '--metadata-file', '/nowhere'], /\/nowhere/],
    [['orders', 'open', 'o', '--title', 'A', '--amount', '30', '--metadata-file', '/etc/hostname'], /no JSON/],
    [['orders', 'adopt', 'order-1'], /needs --id/],
    [['orders', 'check'], /needs REFERENCE/],
    [['orders', 'cancel'], /needs REFERENCE/],
    [['links', 'add', 'a', '--amount', '1'], /needs --id.*links reserve/],
    [['events', 'replay'], /needs ID\. Usage: settled events replay ID\.\.\.$/],
    [['notices', 'resend', '1', '--failed'], /no option --failed/],
    [['notices', 'list', '--since', 'yesterday'], /--since is "yesterday"\. Write how long ago/],
    [['attention', 'end', '1'], /needs --reason TEXT/],
    [['bulk', 'end', '--dry-run'], /needs --kind KIND/],
    [['bulk', 'accept', '--hold', 'amount_mismatch'], /needs --reason TEXT/],
    [['audit', '--head', '7:ab'], /^--head needs --verify\.$/],
    [['verify', '--body', '-', '--secret-file', '-'], /only one of the two files may be standard input/],
    [['verify', '--body', 'x'], /needs --body FILE, and either --order REFERENCE or --secret-file/],
    [['verify', '--body', 'x', '--secret-file', '/dev/null'], /needs --signature TEXT and --timestamp TEXT/],
  ])('%j is refused before anything is asked of the server', async (args, message) => {
    expect(await misunderstood(args)).toMatch(message);
  });
});
