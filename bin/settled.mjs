#!/usr/bin/env node
// The `settled` command, for any Node: src/cli/main.ts does the work on a suitable Node. `settled sandbox` and `settled
// demo` are programs of their own, which an installation may leave out. In the package that `npm run package` makes, all
// are JavaScript in the same places, because Node runs no TypeScript below a folder node_modules.
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runWithFittingNode } from './fitting-node.mjs';

const EXIT_NO_SUCH_PROGRAM = 69;

const SETTLED = programAt('../src/cli/main');
const PROGRAMS = { sandbox: programAt('../sandbox/main'), demo: programAt('../demo/main') };

if (process.env.npm_lifecycle_event === 'npx') process.env.CALLED_AS ??= callByNpx();
const args = process.argv.slice(2);
const asked = askedProgram(args);
if (asked === undefined) await runWithFittingNode(SETTLED, args);
else if (existsSync(PROGRAMS[asked.name])) await runWithFittingNode(PROGRAMS[asked.name], asked.args);
else {
  process.stderr.write(`This installation of settled has no ${asked.name}: run it from a checkout of settled.\n`);
  process.exit(EXIT_NO_SUCH_PROGRAM);
}

/** The program that is named, with its arguments; `settled help NAME` and completion ask it as well. Else undefined. */
function askedProgram(given) {
  const before = given.findIndex((word) => word !== '--json');
  const json = given.slice(0, Math.max(0, before));
  const [first, second, ...more] = given.slice(json.length);
  if (Object.hasOwn(PROGRAMS, first ?? '')) {
    return { name: first, args: [...given.slice(json.length + 1), ...json] };
  }
  if (first === '__complete' && Object.hasOwn(PROGRAMS, second ?? '') && more.length > 0) {
    return { name: second, args: [first, ...more] };
  }
  if (first !== 'help' || !Object.hasOwn(PROGRAMS, second ?? '')) return undefined;
  return { name: second, args: second === 'demo' ? ['--help', ...more, ...json] : ['help', ...more, ...json] };
}

/** How a person calls settled again by npx: `npx settled` if it is installed, else with what npx was given to fetch. */
function callByNpx() {
  try {
    // Beside its node_modules, npx notes what it fetched.
    const noted = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));
    return `npx --yes ${noted._npx.packages[0]}`;
  } catch {
    return 'npx settled';
  }
}

function programAt(place) {
  const [typescript, javascript] = ['.ts', '.js'].map((end) => fileURLToPath(new URL(place + end, import.meta.url)));
  return existsSync(typescript) ? typescript : javascript;
}
