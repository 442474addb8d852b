import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { freePort } from '../test/support/network.ts';
import { startProgram } from './harness/program.ts';
import { command, inFolder, say } from './harness/proof.ts';
import { ROOT } from './harness/settled.ts';
import { until } from './harness/wait.ts';

/**
 * `npm run prove:install`: what an installation for production takes, from npm's registry and with an empty cache: with
 * this Node, and with the machine's own if that is another one.
 */

const MIB = 1024 ** 2;
/** Without the Node that settled brings for machines whose own is too old. */
const SIZE_MIB_MAX = 120;
const DEMO_SECONDS_MAX = 90;
/** What a server has of a checkout. */
const CHECKOUT = ['package.json', 'package-lock.json', '.npmrc', 'LICENSE', 'assets', 'bin', 'migrations', 'src'];
const OLDEST = [22, 18];
const LOOK_EVERY_MS = 5;
const READY_MS_MAX = 60_000;
/** After a start: what it allocated to start is given back. */
const IDLE_MS = 12_000;

type Runtime = { name: string; path: string; isSuitable: boolean };
type Served = { readyMs: number; residentMib: number };

let folder = '';
/** What is not as it must be. */
const broken: string[] = [];

await command('prove:install', {}, () =>
  inFolder('install', async (made) => {
    folder = made;
    const runtimes = [own(), machines()].filter((one, n, all) => n === 0 || one.name !== all[0]?.name);
    const tarball = proveSameBytes();
    for (const runtime of runtimes) {
      const omitted = runtime.isSuitable ? ['--omit=optional'] : [];
      await proveInstall('checkout', runtime, ['ci', '--omit=dev', ...omitted]);
      await proveInstall('package', runtime, ['install', ...omitted, tarball]);
      proveDemo(runtime, tarball);
    }
    return broken;
  }),
);

function judge(isSo: boolean, what: string): void {
  say(`${isSo ? 'ok ' : 'NOT'}  ${what}`);
  if (!isSo) broken.push(what);
}

/** The Node that runs this. */
function own(): Runtime {
  return { name: `Node ${process.versions.node}`, path: dirname(process.execPath), isSuitable: true };
}

/** The Node that a shell of this machine finds; npm puts folders of its own in front. */
function machines(): Runtime {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((place) => !place.includes('node_modules'));
  const path = folders.join(delimiter);
  const version = execFileSync('node', ['-p', 'process.versions.node'], {
    encoding: 'utf8',
    env: { PATH: path },
  }).trim();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isSuitable = major > (OLDEST[0] ?? 0) || (major === OLDEST[0] && minor >= (OLDEST[1] ?? 0));
  return { name: `Node ${version}`, path, isSuitable };
}

/** Two packages of this checkout, made in different places and by users with different habits. */
function proveSameBytes(): string {
  const [one, other] = ['022', '077'].map((umask) => {
    const to = join(folder, `umask-${umask}`);
    mkdirSync(to);
    const script = `umask ${umask} && TMPDIR="$1" "$0" release/package.ts --to "$1"`;
    const made = execFileSync('sh', ['-euc', script, process.execPath, to], { cwd: ROOT, encoding: 'utf8' });
    return join(to, `${/settled-[\d.]+\.tgz/.exec(made)?.[0]}`);
  }) as [string, string];
  const [digest, again] = [one, other].map((file) => createHash('sha256').update(readFileSync(file)).digest('hex'));
  judge(digest === again, `two packages, ${mib(lstatSync(one).size)} each, have the digest ${digest?.slice(0, 12)}…`);
  return one;
}

/** Installs, migrates, serves twice and backs up. */
async function proveInstall(what: 'checkout' | 'package', runtime: Runtime, args: readonly string[]): Promise<void> {
  const at = mkdtempSync(join(folder, `${what}-`));
  if (what === 'checkout') for (const file of CHECKOUT) cpSync(join(ROOT, file), join(at, file), { recursive: true });
  npm('npm', runtime, at, args);
  const inModules = what === 'package' ? 'node_modules/settled' : '.';
  const pinned = sizeOf(join(at, `node_modules/node-${process.platform}-${process.arch}`));
  const size = sizeOf(at) - pinned;
  const data = mkdtempSync(join(folder, 'data-'));
  const hooks = `127.0.0.1:${await freePort()}`;
  const environment = {
    SETTLED_STORE: `sqlite:${data}/settled.db`,
    SETTLED_HOOKS_LISTEN: hooks,
    SETTLED_PUBLIC_URL: `http://${hooks}`,
    SETTLED_OPERATOR_LISTEN: `127.0.0.1:${await freePort()}`,
  };
  const settled = join(at, inModules, 'bin/settled.mjs');
  const run = (...words: string[]) =>
    execFileSync('node', [settled, ...words], {
      encoding: 'utf8',
      cwd: data,
      env: { ...environment, PATH: runtime.path },
    });
  const version = run('--version').trim();
  const first = await serve(runtime, settled, environment, () => run('backup'));
  const migrated = run('migrate').trim();
  const second = await serve(runtime, settled, environment, () => run('doctor'));
  const isWhole =
    migrated.endsWith('has the newest schema already.') && readdirSync(join(data, 'backups')).length === 1;
  const omitted = runtime.isSuitable ? ' without optional packages' : '';
  const more = pinned === 0 ? '' : ` and ${mib(pinned)} of Node`;
  judge(
    isWhole && size <= SIZE_MIB_MAX * MIB,
    `${runtime.name}, ${what}${omitted}: ${mib(size)}${more}; ${version}; ` +
      `ready in ${first.readyMs} ms, then in ${second.readyMs} ms; ${second.residentMib} MiB of memory; migrates, backs up`,
  );
}

function proveDemo(runtime: Runtime, tarball: string): void {
  const at = mkdtempSync(join(folder, 'demo-'));
  cpSync(tarball, join(at, basename(tarball)));
  const begun = performance.now();
  const { steps } = JSON.parse(
    npm('npx', runtime, at, ['--yes', `./${basename(tarball)}`, 'demo', '--once', '--json']),
  );
  const seconds = (performance.now() - begun) / 1000;
  const isPaid = steps.at(-1)?.state === 'paid';
  judge(isPaid && seconds <= DEMO_SECONDS_MAX, `${runtime.name}, npx demo --once: ${seconds.toFixed(1)} s, paid`);
}

/** Runs npm with a cache that is empty. Returns what it prints. */
function npm(program: 'npm' | 'npx', { path }: Runtime, cwd: string, args: readonly string[]): string {
  const cache = mkdtempSync(join(folder, 'cache-'));
  const { HOME, NODE_EXTRA_CA_CERTS } = process.env;
  const beside = execFileSync('which', [program], { encoding: 'utf8' }).trim();
  return execFileSync('node', [beside, ...args], {
    cwd,
    encoding: 'utf8',
    env: { HOME, NODE_EXTRA_CA_CERTS, PATH: `${path}${delimiter}${process.env.PATH}`, npm_config_cache: cache },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** Serves until it is ready and idle, and then does `work`. */
async function serve(
  { path }: Runtime,
  settled: string,
  environment: Record<string, string>,
  work: () => void,
): Promise<Served> {
  const begun = performance.now();
  const running = startProgram(['node', '--max-semi-space-size=16', settled, 'serve'], { ...environment, PATH: path });
  const url = `http://${environment.SETTLED_OPERATOR_LISTEN}/readyz`;
  const isReady = async () => (await fetch(url).catch(() => null))?.ok === true;
  await until(`starting ${settled}`, READY_MS_MAX, isReady, LOOK_EVERY_MS);
  const readyMs = Math.round(performance.now() - begun);
  await after(IDLE_MS);
  const residentMib = residentKib(running.child.pid as number) / 1024;
  work();
  await running.end('SIGTERM');
  return { readyMs, residentMib: Math.round(residentMib) };
}

/** Of a process and those that it started. */
function residentKib(pid: number): number {
  const own = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  return children.filter((child) => child !== '').reduce((sum, child) => sum + residentKib(Number(child)), own);
}

/** What the files of a folder take on the disk; 0 if it is not there. */
function sizeOf(path: string): number {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return 0;
  const names = found.isDirectory() ? readdirSync(path) : [];
  return names.reduce((sum, name) => sum + sizeOf(join(path, name)), found.blocks * 512);
}

function mib(bytes: number): string {
  return `${(bytes / MIB).toFixed(bytes < 10 * MIB ? 1 : 0)} MiB`;
}
