import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../../prove/harness/settled.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { fatalLine, onTerminal, runSettled, spawnSettled } from '../support/process.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

function environment(over: Record<string, string> = {}): Record<string, string> {
  return {
    SETTLED_STORE: `sqlite:${join(testFolder(), 'settled.db')}`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    ...over,
  };
}

/** How many listeners these have once `serve` listens: the command line has one for bugs as well, which prints them. */
const LISTENERS = { uncaughtException: 2, SIGTERM: 1 } as const;

/** Runs a line of JavaScript in the process as soon as `serve` listens for an event: earlier, Node would handle it. */
function planted(code: string, event: keyof typeof LISTENERS): Record<string, string> {
  const look = `if (process.listenerCount('${event}') < ${LISTENERS[event]}) return; clearInterval(looking); ${code}`;
  const later = `const looking = setInterval(() => { ${look} }, 1).unref()`;
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(later)}` };
}

const WRONG = { SETTLED_TOLERANCE_SECONDS: '0' };
const WHAT_IS_WRONG = '  - SETTLED_TOLERANCE_SECONDS is "0"; write whole seconds from 1 to 86400';

describe('cli: serve', () => {
  it('that cannot start says why once, as a line of the log and without a stack', async () => {
    const end = await runSettled(['serve'], environment(WRONG));
    expect([end.code, end.stderr]).toEqual([EXIT.configuration, '']);
    expect(JSON.parse(end.stdout)).toEqual({
      ...{ level: 'fatal', time: expect.any(String), msg: 'settled cannot serve', exit: EXIT.configuration },
      fault: { code: 'configuration_invalid', message: `The configuration cannot be used:\n${WHAT_IS_WRONG}` },
    });
  });

  it('says it for a person on a terminal, and as JSON there with --json', async () => {
    const wrong = environment({ ...WRONG, ...onTerminal({ colours: false }) });
    const [end, asJson] = await Promise.all([runSettled(['serve'], wrong), runSettled(['serve', '--json'], wrong)]);
    expect([end.code, end.stderr]).toEqual([EXIT.configuration, '']);
    expect(end.stdout.split('\n')).toEqual([
      expect.stringMatching(/^[\d:.]+ FATAL: settled cannot serve {2}exit=78 fault=configuration_invalid$/),
      '    The configuration cannot be used:',
      `    ${WHAT_IS_WRONG}`,
      '',
    ]);
    expect(fatalLine(asJson)).toMatchObject({ exit: EXIT.configuration });
  });

  it('says it on standard error if the log is to say nothing', async () => {
    const silent = { SETTLED_LOG_LEVEL: 'silent', SETTLED_HOOKS_LISTEN: '192.0.2.1:8787' };
    const end = await runSettled(['serve'], environment(silent));
    expect([end.code, end.stdout]).toEqual([EXIT.configuration, '']);
    expect(end.stderr).toMatch(/^settled: .*192\.0\.2\.1:8787.*\n$/);
  });

  it('says first which version serves, and where the console and the token are', async () => {
    const own = environment();
    const storePath = (own.SETTLED_STORE as string).slice('sqlite:'.length);
    const given = { SETTLED_OPERATOR_TOKEN: 'a-token-of-the-operator', SETTLED_OPERATOR_LISTEN: '0.0.0.0:0' };
    const [made, brought] = [spawnSettled(['serve'], own), spawnSettled(['serve'], environment(given))];
    const line = JSON.parse(await made.line(/settled is serving/));
    expect(line).toMatchObject({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      console: `http://127.0.0.1:${line.operator.port}/`,
      operatorToken: `${storePath}.operator-token`,
    });
    expect(existsSync(line.operatorToken)).toBe(true);
    const other = JSON.parse(await brought.line(/settled is serving/));
    expect(other).toMatchObject({
      console: `http://127.0.0.1:${other.operator.port}/`,
      operatorToken: 'SETTLED_OPERATOR_TOKEN',
    });
    for (const { console: page } of [line, other]) expect((await fetch(page)).url).toContain('/sign-in');
    expect(brought.stdout()).not.toContain(given.SETTLED_OPERATOR_TOKEN);
  });

  it.each([
    ['an uncaught exception', `throw new Error('planted')`],
    ['an unhandled rejection', `Promise.reject(new Error('planted'))`],
  ])('ends with 70 for %s, with its stack', async (_what, code) => {
    const end = await runSettled(['serve'], { ...environment(), ...planted(code, 'uncaughtException') });
    expect(end.code).toBe(EXIT.bug);
    const { msg, exit, fault } = fatalLine(end);
    expect({ msg, exit }).toEqual({ msg: 'settled has a bug and ends; please report it', exit: EXIT.bug });
    expect(fault).toEqual({ message: 'planted', stack: expect.stringMatching(/^Error: planted\n +at /) });
  });

  it('stops if the signal came before it served', async () => {
    const env = environment(planted(`process.kill(process.pid, 'SIGTERM')`, 'SIGTERM'));
    const end = await spawnSettled(['serve'], env).finished;
    expect(end).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(end.stdout).toContain('"stopped"');
  });

  it('continues while its log cannot be written, as on a full disk', async (context) => {
    if (!existsSync('/dev/full')) return context.skip('this system has no /dev/full');
    const port = await freePort();
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [MAIN, 'serve'], {
      env: environment({ SETTLED_OPERATOR_LISTEN: `127.0.0.1:${port}` }),
      stdio: ['ignore', full, 'inherit'],
    });
    closeSync(full);
    onTestFinished(() => void child.kill('SIGKILL'));
    const code = new Promise((resolve) => child.once('exit', resolve));
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200));
    child.kill('SIGTERM');
    expect(await code).toBe(0);
  });
});

describe('cli: an output', () => {
  it('whose reader leaves before its end is not an error', async () => {
    const running = spawnSettled(['help'], {});
    running.child.stdout?.destroy();
    expect(await running.finished).toMatchObject({ code: 0, stderr: '' });
  });

  it('that cannot be written is an error', async (context) => {
    if (!existsSync('/dev/full')) return context.skip('this system has no /dev/full');
    const full = openSync('/dev/full', 'w');
    const child = spawn(process.execPath, [MAIN, 'help'], { env: {}, stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
    });
    expect(await new Promise((resolve) => child.once('close', resolve))).toBe(EXIT.diskFailed);
    expect(stderr).toBe('settled: The output cannot be written (ENOSPC), and is not whole.\n');
  });
});
