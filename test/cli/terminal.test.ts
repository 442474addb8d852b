import { spawnSync } from 'node:child_process';
import stringWidth from 'string-width';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMPILE_CACHE, MAIN } from '../../prove/harness/settled.ts';
import { COMMANDS, run } from '../../src/cli/commands.ts';
import type { Screen } from '../../src/terminal/screen.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { runSettled, spawnProgram } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { environmentOf } from './settled.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const settled = sharedApp();
const EVIL = 'evil';
/** As JSON has them: erase the screen, be red, write to the left. */
const OBEYED = '\\u001b[2J\\u009b31m\\u202e';

/** An order that was paid by someone whose name a terminal would obey. */
beforeAll(async () => {
  const link = await settled().reserve(EVIL, '1234.50');
  const body = paymentEvent({ linkId: `pl_${EVIL}`, amount: '1234.50', id: `evt_${OBEYED}` });
  const customer = `"latestPayment":{"customer":{"name":"Ana ${OBEYED} Souza","email":"ana@example.com"},`;
  await settled().deliver(link, body.replace('"latestPayment":{', customer));
  await eventually(async () => expect(await settled().order(EVIL)).toMatchObject({ state: 'paid' }));
});

/** What a command prints on a terminal of so many columns, two minutes and a half from now. */
async function onScreen(columns: number | null, args: readonly string[], colours = false): Promise<string> {
  let text = '';
  const screen: Screen = { columns, colours, nowMs: () => Date.now() + 150_000 };
  const code = await run(args, {
    environment: environmentOf(settled()),
    screen,
    print: async (more) => {
      text += more;
      return true;
    },
    printError: (error) => {
      throw new Error(error);
    },
  });
  expect(code).toBe(0);
  return text;
}

const lines = (text: string) => text.trimEnd().split('\n');
/** Lines too wide for the terminal, but for what is typed or copied. */
const tooWide = (text: string, columns: number) =>
  lines(text).filter((line) => stringWidth(line) > columns && !/ settled |`|:\/\/|msg_/.test(line));

describe('cli: on a terminal', () => {
  it('shows UTC, and how long ago that was, for each fact and each entry', async () => {
    expect(await onScreen(120, ['orders', 'show', EVIL])).toMatch(/^created +2\S+\.\d{3}Z {2}\(2 min ago\)$/m);
    expect(await onScreen(120, ['why', EVIL])).toMatch(
      /^ {2}2\d{3}-\d\d-\d\dT[\d:]+Z, 2 min ago {2}delivery +authentic/m,
    );
    expect(await onScreen(80, ['why', EVIL])).toMatch(/^ {2}2\d{3}-\d\d-\d\dT[\d:]+Z {2}delivery +authentic/m);
  });

  it.each([
    ['orders', 'list'],
    ['orders', 'show', EVIL],
    ['why', EVIL],
    ['events', 'list'],
    ['notices', 'list'],
    ['attention'],
  ])('%s %s fits, and lets nothing of a payer reach the terminal as an order', async (...args) => {
    for (const columns of [null, 60, 80, 120, 200]) {
      const text = await onScreen(columns, args, true);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those that settled writes itself
      const own = text.replace(/\u001b\[(?:1|2|22|31|32|33|39)m/g, '');
      expect(own.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
      if (columns !== null) expect([columns, tooWide(own, columns)]).toEqual([columns, []]);
    }
    expect(await onScreen(200, [...args, '--json'], true)).not.toContain('\u001b');
  });

  it.each([60, 116])('of %d columns, help on every command fits, but for what is typed or copied', async (columns) => {
    for (const { name } of COMMANDS) {
      const text = await onScreen(columns, ['help', ...name.split(' ')]);
      const [prose = ''] = text.split('\nExamples:\n', 1);
      expect([name, tooWide(prose, columns)]).toEqual([name, []]);
    }
  });
});

describe('cli: colours', () => {
  const HAS_SCRIPT = spawnSync('script', ['--version']).status === 0;
  const NO_SCRIPT = 'script (util-linux) is not installed, which makes a terminal';

  const ON = { TERM: 'xterm-256color', NODE_COMPILE_CACHE: COMPILE_CACHE };

  /** The process on a real terminal, or in a pipe. */
  async function isColoured(args: string, environment: Record<string, string>, isTerminal: boolean): Promise<boolean> {
    const command = `'${process.execPath}' '${MAIN}' ${args}`;
    const through = isTerminal ? ['script', '-qec', command, '/dev/null'] : ['sh', '-c', command];
    const { stdout } = await spawnProgram(through, { ...ON, ...environment }, { cwd: '/' }).finished;
    expect(stdout).toContain('Usage: settled version');
    return stdout.includes('\u001b[1m');
  }

  type Case = [args: string, environment: Record<string, string>, isTerminal: boolean, isColoured: boolean];
  const CASES: Case[] = [
    ['help version', {}, true, true],
    ['help version', { NO_COLOR: '1' }, true, false],
    ['help version', { TERM: 'dumb' }, true, false],
    ['help version', {}, false, false],
    ['help version', { FORCE_COLOR: '1' }, false, true],
  ];

  it(`are on a terminal and in a pipe as asked for${HAS_SCRIPT ? '' : `: in a pipe alone, ${NO_SCRIPT}`}`, async () => {
    const cases = CASES.filter(([, , isTerminal]) => HAS_SCRIPT || !isTerminal);
    const seen = await Promise.all(
      cases.map(async ([args, environment, isTerminal]): Promise<Case> => {
        return [args, environment, isTerminal, await isColoured(args, environment, isTerminal)];
      }),
    );
    expect(seen).toEqual(cases);
  });

  it.skipIf(!HAS_SCRIPT)(`a real terminal's width is used${HAS_SCRIPT ? '' : `: skipped, ${NO_SCRIPT}`}`, async () => {
    const command = `stty cols 50 rows 20; '${process.execPath}' '${MAIN}' help version`;
    const { stdout } = await spawnProgram(['script', '-qec', command, '/dev/null'], { ...ON, NO_COLOR: '1' }).finished;
    expect(stdout).toContain('Usage: settled version');
    expect(stdout.split('\r\n').filter((line) => line.length > 50)).toEqual([]);
  });

  it('of 60 columns, an error is broken between words, and what continues a point of its list stands below it', async () => {
    let text = '';
    const code = await run(['stats'], {
      environment: { SETTLED_STORE: 'mysql:x' },
      errorScreen: { columns: 60, colours: false, nowMs: () => 0 },
      print: async () => true,
      printError: (error) => {
        text += error;
      },
    });
    expect(code).toBe(78);
    expect(lines(text).slice(0, 3)).toEqual([
      'settled: The configuration cannot be used:',
      '  - SETTLED_STORE names no store that settled knows; write',
      '    sqlite: and the path of a file, like',
    ]);
  });

  it('an error begins in red', async () => {
    const ended = await runSettled(['frobnicate']);
    expect(ended.stderr).toBe('settled: There is no command "frobnicate". See: settled help\n');
    const { stderr } = await spawnProgram([process.execPath, MAIN, 'frobnicate'], { ...ON, FORCE_COLOR: '1' }).finished;
    expect(stderr).toBe('\u001b[31msettled:\u001b[39m There is no command "frobnicate". See: settled help\n');
  });
});
