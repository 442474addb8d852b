import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Finished } from '../../prove/harness/program.ts';
import { COMPILE_CACHE, MAIN, serveEnvironment } from '../../prove/harness/settled.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';

const BIN = fileURLToPath(new URL('../../bin', import.meta.url));
const LAUNCHER = join(BIN, 'settled.mjs');
/** What the launcher does once it has found the program, here with the bundled one, which takes half as much to start. */
const BUNDLED = [join(BIN, 'fitting-node.mjs'), MAIN];

/** The machine's own Node if it is too old to run settled: only then does the launcher start a child. */
const OLD_NODE = findOldNode();
const withOldNode = OLD_NODE === null ? describe.skip : describe;

function findOldNode(): string | null {
  // npm puts node_modules/.bin in front of the PATH, and with it the suitable Node.
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const found = execFileSync('node', ['-p', 'process.versions.node + " " + process.execPath'], {
    encoding: 'utf8',
    env: { ...process.env, PATH: folders.join(delimiter) },
  });
  const [version = '', path = ''] = found.trim().split(' ');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < 22 || (major === 22 && minor < 18)) return path;
  console.warn(`the launcher's tests with an old Node are skipped: \`node\` is ${version}`);
  return null;
}

type Running = { child: ChildProcess; stdout(): string; serving: Promise<void>; finished: Promise<Finished> };

/** Starts a script as the leader of a process group of its own, as a shell or npm does. */
function start(node: string, args: readonly string[], environment: Record<string, string> = {}): Running {
  const child = spawn(node, args, {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let stdout = '';
  let stderr = '';
  const { promise: serving, resolve } = Promise.withResolvers<void>();
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    stdout += chunk;
    if (stdout.includes('settled is serving')) resolve();
  });
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  // Both outputs are closed when the launcher *and* its child are gone.
  const finished = new Promise<Finished>((end) => {
    child.once('close', (code, signal) => end({ code, signal, stdout, stderr }));
  });
  onTestFinished(() => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL');
    } catch {
      // The whole group is gone already.
    }
  });
  return { child, stdout: () => stdout, serving, finished };
}

function startServing(node: string, args: readonly string[], environment: Record<string, string> = {}): Running {
  const own = serveEnvironment(join(testFolder(), 'settled.db'));
  return start(node, [...args, 'serve'], { ...own, NODE_COMPILE_CACHE: COMPILE_CACHE, ...environment });
}

function logged({ stdout }: Finished): string[] {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).msg);
}

describe('cli: the launcher on a suitable Node', () => {
  it('runs settled in this very process', async () => {
    const { child, finished } = start(process.execPath, [LAUNCHER, '--version', '--json']);
    const { code, stdout } = await finished;
    expect([code, JSON.parse(stdout).node]).toEqual([0, process.version]);
    expect(child.spawnargs).toContain('--version');
  });
});

describe('cli: the launcher under npm', () => {
  // A shell that starts a last command becomes it; these have more to do.
  it.each([
    ['npm that started it', '"$@"; :'],
    ['npm that started a shell that started it', `sh -c '"$@"; :' sh "$@"; :`],
  ])('stops the server in order when %s is killed', async (_what, script) => {
    const command = ['-c', script, 'npm', process.execPath, ...BUNDLED];
    const { child, serving, finished } = startServing('sh', command, { npm_lifecycle_event: 'start' });
    await serving;
    child.kill('SIGKILL');
    const end = await finished;
    expect(end.signal).toBe('SIGKILL');
    expect(logged(end).slice(-2)).toEqual(['stopping', 'stopped']);
  });
});

withOldNode('cli: the launcher on an old Node', () => {
  const node = OLD_NODE as string;

  it('runs settled on the pinned Node, and passes arguments, outputs and the exit code on', async () => {
    const asked = start(node, [LAUNCHER, 'help', 'orders', 'list', '--json']);
    const refused = start(node, [LAUNCHER, 'frobnicate']);
    expect(await asked.finished).toMatchObject({ code: 0, stdout: expect.stringMatching(/^{"name":"orders list"/) });
    expect(await refused.finished).toMatchObject({
      code: EXIT.usage,
      stdout: '',
      stderr: expect.stringContaining('no command "frobnicate"'),
    });
  });

  it('passes limits of memory on, and no other option', async () => {
    const options = ['--max-semi-space-size=16', '--no-warnings'];
    const NODE_OPTIONS = '--import=data:text/javascript,console.error(process.execArgv.join())';
    const { stderr } = await start(node, [...options, LAUNCHER, '--version'], { NODE_OPTIONS }).finished;
    expect(stderr.trimEnd().split('\n')).toEqual([options.join(), options[0]]);
  });

  it('passes SIGTERM on, and a second one, as npm sends it, does not cut the stop short', async () => {
    const { child, serving, finished } = startServing(node, BUNDLED);
    await serving;
    child.kill('SIGTERM');
    child.kill('SIGTERM');
    const end = await finished;
    expect(end).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(logged(end).slice(-2)).toEqual(['stopping', 'stopped']);
  });

  it('stops in order when the whole process group gets the signal, as from a terminal', async () => {
    const { child, serving, finished } = startServing(node, [LAUNCHER]);
    await serving;
    process.kill(-(child.pid as number), 'SIGINT');
    const end = await finished;
    expect(end).toMatchObject({ code: 0, signal: null, stderr: '' });
    expect(logged(end).filter((message) => message === 'stopped')).toHaveLength(1);
  });

  it('stops the server in order when it is killed itself', async () => {
    const { child, serving, finished } = startServing(node, BUNDLED);
    await serving;
    child.kill('SIGKILL');
    const end = await finished;
    expect(end.signal).toBe('SIGKILL');
    expect(logged(end).slice(-2)).toEqual(['stopping', 'stopped']);
  });

  it('ends with 128 and the number of the signal that killed its child', async () => {
    const script = join(testFolder(), 'dies.mjs');
    writeFileSync(script, `process.kill(process.pid, 'SIGKILL');\n`);
    const { finished } = start(node, [join(BIN, 'fitting-node.mjs'), script]);
    expect(await finished).toMatchObject({ code: 137, signal: null });
  });

  it('says in one sentence what is missing if there is no suitable Node', async () => {
    const folder = join(testFolder(), 'bin');
    mkdirSync(folder);
    cpSync(BIN, folder, { recursive: true });
    const end = await start(node, [join(folder, 'settled.mjs'), 'serve']).finished;
    expect(end).toMatchObject({ code: EXIT.unreachable, stdout: '' });
    expect(end.stderr).toMatch(/^settled needs Node 22\.18 or newer.*npm ci.*\n$/);
  });
});
