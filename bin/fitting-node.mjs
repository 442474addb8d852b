#!/usr/bin/env node
// Finds a Node that can run settled, and runs a script with it. Plain JavaScript that any Node since 18 can read,
// because a Node that is too old must be able to start it (better-sqlite3 13 crashes below 22).
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import module, { createRequire } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

const OLDEST = [22, 18];
const EXIT_NO_FITTING_NODE = 69;

/** The path of a suitable Node: this one if it is, else the pinned one that npm installed; or undefined. */
export function fittingNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1])) return process.execPath;
  const os = process.platform === 'win32' ? 'win' : process.platform;
  const binary = process.platform === 'win32' ? 'bin/node.exe' : 'bin/node';
  // npm puts it into this folder's node_modules, or into one above it.
  const places = createRequire(import.meta.url).resolve.paths(`node-${os}-${process.arch}`) ?? [];
  return places.map((place) => join(place, `node-${os}-${process.arch}`, binary)).find(existsSync);
}

/**
 * Node strips the types of every file at every start, in every thread, which costs 20 MB and 100 ms each. With a
 * compile cache it does so once. The cache is in the checkout or package, so that only its owner can put code into it;
 * Node does without it if another user runs settled.
 */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/compile', import.meta.url));

/**
 * Runs `script` with a suitable Node: in this process if this Node is suitable, otherwise in a child. The child gets
 * this process's limits of memory and its signals; its output and exit status are passed on. If this process is killed,
 * the child notices that by its IPC channel, and stops.
 */
export async function runWithFittingNode(script, args) {
  const node = fittingNode();
  if (node === undefined) {
    process.stderr.write(
      `settled needs Node ${OLDEST.join('.')} or newer; this is ${process.versions.node}, and no pinned Node is ` +
        'installed for this platform. Install Node 24; or run `npm ci` or `npm install` again, without ' +
        '--omit=optional.\n',
    );
    process.exit(EXIT_NO_FITTING_NODE);
  }
  stopWithNpm();
  process.env.NODE_COMPILE_CACHE ??= COMPILE_CACHE;
  if (node === process.execPath) {
    module.enableCompileCache?.(process.env.NODE_COMPILE_CACHE);
    process.argv = [process.argv[0], script, ...args];
    await import(pathToFileURL(script).href);
    return;
  }
  const child = spawn(node, [...limitsOfNode(), script, ...args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`Cannot start ${node}: ${error.message}\n`);
    process.exit(EXIT_NO_FITTING_NODE);
  });
  child.on('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
}

const LOOK_EVERY_MS = 1_000;

/**
 * npm and npx pass signals on, but not their own end: if one is killed, what it started would go on without it. Asks
 * this process to stop, as SIGTERM does. Does nothing if npm did not start it, as in a service or a shell.
 */
function stopWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const before = ancestors();
  const timer = setInterval(() => {
    if (ancestors() === before) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  }, LOOK_EVERY_MS);
  timer.unref();
}

/** The parent; and its own parent if the system shows it, because npm may start a shell that starts this process. */
function ancestors() {
  try {
    const status = readFileSync(`/proc/${process.ppid}/status`, 'utf8');
    const isShell = /^Name:\t(?:sh|dash|bash|ash|busybox)$/m.test(status);
    return `${process.ppid} ${isShell ? /^PPid:\t(\d+)$/m.exec(status)?.[1] : ''}`;
  } catch {
    return `${process.ppid} `;
  }
}

/** No others: another Node may not know them, and some take what only one process can have, as a port. */
function limitsOfNode() {
  return process.execArgv.filter((option) => option.startsWith('--max-'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [script, ...args] = process.argv.slice(2);
  if (script === undefined) {
    process.stderr.write('usage: fitting-node.mjs SCRIPT [ARGUMENT ...]\n');
    process.exit(64);
  }
  await runWithFittingNode(fileURLToPath(pathToFileURL(script)), args);
}
