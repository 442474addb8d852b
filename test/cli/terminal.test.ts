import { spawnSync } from 'node:child_process';
import stringWidth from 'string-width';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS, run } from '../../src/cli/commands.ts';
import type { Screen } from '../../src/cli/screen.ts';
import { timeForms } from '../../src/cli/screen.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { COMPILE_CACHE, MAIN, runSettled, spawnProgram } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { environmentOf } from './settled.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const settled = sharedApp();
const LONG = 'pedido-com-um-nome-muito-comprido-que-nao-cabe-em-sessenta-colunas';
const WIDE = '注文-日本語-ação';
const EVIL = 'evil';
/** As JSON has them: erase the screen, be red, write to the left. */
const OBEYED = '\\u001b[2J\\u009b31m\\u202e';

/** Orders with wide and long references, one of them paid by someone whose name a terminal would obey. */
beforeAll(async () => {
  for (const reference of [LONG, WIDE, EVIL, 'small']) {
    const link = await settled().reserve(reference, reference === 'small' ? '30.00' : '1234.50');
    if (reference !== EVIL) continue;
    const body = paymentEvent({ linkId: `pl_${EVIL}`, amount: '1234.50', id: `evt_${OBEYED}` });
    const customer = `"latestPayment":{"customer":{"name":"Ana ${OBEYED} Souza","email":"ana@example.com"},`;
    await settled().deliver(link, body.replace('"latestPayment":{', customer));
  }
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
/** Lines too wide for the terminal; a long reference is left for the terminal to break, and may be. */
const tooWide = (text: string, columns: number) =>
  lines(text).filter((line) => stringWidth(line) > columns && !line.includes(LONG) && !/ settled |https?:/.test(line));

describe('cli: on a terminal', () => {
  it.each([60, 80, 100, 200])('of %d columns, tables fit, and have all that they have in a pipe', async (columns) => {
    const narrow = await onScreen(columns, ['orders', 'list']);
    expect(tooWide(narrow, columns)).toEqual([]);
    const piped = await onScreen(null, ['orders', 'list']);
    for (const word of [LONG, WIDE, EVIL, 'small', 'awaiting_payment', 'paid', '1234.50 BRL', '30.00 BRL']) {
      expect([word, piped.includes(word), narrow.includes(word)]).toEqual([word, true, true]);
    }
  });

  it('of 60 columns, what does not fit stands below its row with its heading, and nothing that is empty', async () => {
    const text = await onScreen(60, ['orders', 'list', '--q', EVIL]);
    expect(text).toMatch(
      /^REFERENCE {2}STATE +ASKED +CAPTURED {2}CREATED\nevil +paid +1234\.50 BRL +1234\.50 BRL +2 min ago\n {4}paid 2\S+Z(?: \(.* here\))?, 2 min ago\n/,
    );
    expect(text).toContain('\n    customer ana@example.com\n');
    expect(text).not.toContain('flags');
    // Another row has what this one lacks.
    expect(await onScreen(60, ['orders', 'list'])).not.toMatch(/^ {4}[a-z ]+ -$/m);
  });

  it('amounts and counts are aligned at their right, wide characters or not', async () => {
    const ends = lines(await onScreen(null, ['orders', 'list'])).map((line) => {
      const asked = /^.*?(ASKED|\d BRL)/.exec(line)?.[0] ?? '';
      return stringWidth(asked);
    });
    expect(new Set(ends).size).toBe(1);
  });

  it('shows UTC, and how long ago that was, for each fact and each entry', async () => {
    const shown = await onScreen(120, ['orders', 'show', EVIL]);
    expect(shown).toMatch(/^created +2\S+\.\d{3}Z {2}\((?:.* here, )?2 min ago\)$/m);
    const why = await onScreen(120, ['why', EVIL]);
    expect(why).toMatch(/^ {2}2\d{3}-\d\d-\d\dT[\d:]+Z(?: \(.* here\))?, 2 min ago +delivery +authentic/m);
    expect(tooWide(await onScreen(60, ['why', EVIL]), 60)).toEqual([]);
    expect(tooWide(await onScreen(60, ['notices', 'list']), 60)).toEqual([]);
  });

  it.each([
    [-59, '59 s ago'],
    [-119, '1 min ago'],
    [0.5, 'just now'],
    [119, 'in 2 min'],
    [3 * 86_400 - 1, 'in 3 d'],
    [49 * 3_600, 'in 2 d'],
  ])('a time %d s from now is "%s"', (seconds, age) => {
    const screen = { columns: 80, colours: false, nowMs: () => 0 };
    const [, , shortest] = timeForms(screen, new Date(seconds * 1_000).toISOString());
    expect(shortest).toBe(age);
  });

  it('in a pipe, times are exact, and nothing is folded', async () => {
    const [, ...rows] = lines(await onScreen(null, ['orders', 'list']));
    expect(rows).toHaveLength(4);
    for (const row of rows) expect(row).toMatch(/ \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z /);
  });

  it('colours headings and states, and nothing in JSON', async () => {
    const text = await onScreen(200, ['orders', 'list'], true);
    expect(text).toContain('\u001b[1mREFERENCE\u001b[22m');
    expect(text).toContain('\u001b[32mpaid\u001b[39m');
    expect(await onScreen(200, ['orders', 'list', '--json'], true)).not.toContain('\u001b');
  });

  it.each([['orders', 'list'], ['orders', 'show', EVIL], ['why', EVIL], ['events', 'list'], ['attention']])(
    '%s %s lets nothing of a payer reach the terminal as an order',
    async (...args) => {
      for (const columns of [null, 60, 200]) {
        const text = await onScreen(columns, args, true);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: those that settled writes itself
        const own = text.replace(/\u001b\[(?:1|2|22|31|32|33|39)m/g, '').replaceAll('\n', '');
        expect(own).not.toMatch(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/u);
      }
    },
  );

  it('of 60 columns, help on every command fits, but for what is typed or copied', async () => {
    for (const { name } of COMMANDS) {
      const text = await onScreen(60, ['help', ...name.split(' ')]);
      const [prose = ''] = text.split('\nExamples:\n', 1);
      const broken = lines(prose).filter((line) => stringWidth(line) > 60 && !/ settled |`|:\/\//.test(line));
      expect([name, broken]).toEqual([name, []]);
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
    ['--color=always help version', { NO_COLOR: '1' }, true, true],
    ['help version --color never', {}, true, false],
    ['help version', {}, false, false],
    ['help version', { FORCE_COLOR: '1' }, false, true],
    ['help version --color=always', {}, false, true],
    ['help version --color=never', { FORCE_COLOR: '1' }, false, false],
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

  it.skipIf(!HAS_SCRIPT)(
    `the clock of this machine stands beside UTC${HAS_SCRIPT ? '' : `: skipped, ${NO_SCRIPT}`}`,
    async () => {
      const command = `stty cols 120 rows 20; '${process.execPath}' '${MAIN}' orders show ${EVIL}`;
      const { createdAt } = (await settled().order(EVIL)) as { createdAt: string };
      const environment = { ...ON, ...environmentOf(settled()), NO_COLOR: '1' };
      for (const [TZ, shiftHours] of [
        ['Asia/Tokyo', 9],
        ['Etc/GMT+12', -12],
        ['UTC', 0],
      ] as const) {
        const { stdout } = await spawnProgram(['script', '-qec', command, '/dev/null'], { ...environment, TZ })
          .finished;
        const there = new Date(Date.parse(createdAt) + shiftHours * 3_600_000).toISOString();
        const [day, clock] = [there.slice(5, 10), there.slice(11, 19)];
        const here = there.slice(0, 10) === createdAt.slice(0, 10) ? clock : `${day} ${clock}`;
        const beside = shiftHours === 0 ? '' : `${here} here, `;
        const line = stdout.split('\r\n').find((one) => one.startsWith('created')) ?? '';
        expect(line.replace(/ +/, ' ').replace(/(?:just now|\d+ (?:s|min) ago)\)$/, 'AGE)')).toBe(
          `created ${createdAt}  (${beside}AGE)`,
        );
      }
    },
  );

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
    const ended = await runSettled(['frobnicate', '--color=always']);
    expect(ended.stderr).toBe('settled: There is no command "frobnicate". See: settled help\n');
    const { stderr } = await spawnProgram([process.execPath, MAIN, 'frobnicate', '--color=always'], ON).finished;
    expect(stderr).toBe('\u001b[31msettled:\u001b[39m There is no command "frobnicate". See: settled help\n');
  });
});
