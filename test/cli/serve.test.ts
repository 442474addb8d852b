import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/port.ts';
import { MAIN, runSettled, spawnSettled } from '../support/process.ts';

function environment(over: Record<string, string> = {}): Record<string, string> {
  return {
    SETTLED_STORE: `sqlite:${join(testFolder(), 'settled.db')}`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    ...over,
  };
}

/** Who listens for these when `serve` does: for bugs the command line does as well, and only says them. */
const LISTENERS = { uncaughtException: 2, SIGTERM: 1 } as const;

/** Runs a line of JavaScript in the process as soon as `serve` listens for an event: before that, Node's own way is seen. */
function planted(code: string, event: keyof typeof LISTENERS): Record<string, string> {
  const look = `if (process.listenerCount('${event}') < ${LISTENERS[event]}) return; clearInterval(looking); ${code}`;
  const later = `const looking = setInterval(() => { ${look} }, 1).unref()`;
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(later)}` };
}

describe('cli: serve', () => {
  it('that cannot start says why in a sentence and a fatal line, without a stack', async () => {
    const end = await runSettled(['serve'], environment({ SETTLED_TOLERANCE_SECONDS: '0' }));
    expect(end.code).toBe(EXIT.configuration);
    expect(end.stderr).toBe(
      'settled: The configuration cannot be used:\n' +
        '  - SETTLED_TOLERANCE_SECONDS is "0"; write whole seconds from 1 to 86400\n',
    );
    expect(JSON.parse(end.stdout)).toMatchObject({
      level: 'fatal',
      fault: { code: 'configuration_invalid' },
    });
  });

  it('prints its failure as JSON where that is wanted', async () => {
    const { stderr } = await runSettled(['serve', '--json'], environment({ SETTLED_NONSENSE: '1' }));
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'configuration_invalid',
      exit: EXIT.configuration,
    });
  });

  it.each([
    ['an exception that nobody caught', `throw new Error('planted')`],
    ['a rejection that nobody handled', `Promise.reject(new Error('planted'))`],
  ])('ends with 70 for %s, with its stack', async (_what, code) => {
    const end = await runSettled(['serve'], { ...environment(), ...planted(code, 'uncaughtException') });
    expect(end.code).toBe(EXIT.bug);
    expect(end.stderr).toMatch(
      /^settled: This is a bug in settled\. Please report it\.\nError: planted\n +at /,
    );
    const last = JSON.parse(end.stdout.trim().split('\n').at(-1) as string);
    expect(last).toMatchObject({ level: 'fatal', fault: { message: 'planted' } });
  });

  it('stops when it was told to before it served', async () => {
    const env = environment(planted(`process.kill(process.pid, 'SIGTERM')`, 'SIGTERM'));
    const end = await spawnSettled(['serve'], env).finished;
    expect(end).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(end.stdout).toContain('"stopped"');
  });

  it('goes on while its log cannot be written, as on a full disk', async (context) => {
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
  it('that nobody reads to its end is no error', async () => {
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
