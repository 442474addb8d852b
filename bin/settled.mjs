#!/usr/bin/env node
// The `settled` command, for any Node: src/cli/main.ts does the work on a suitable Node. `settled sandbox` and `settled
// demo` are programs of their own, which an installation may leave out.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runWithFittingNode } from './fitting-node.mjs';

const EXIT_NO_SUCH_PROGRAM = 69;

const SETTLED = pathOf('../src/cli/main.ts');
const PROGRAMS = { sandbox: pathOf('../sandbox/main.ts'), demo: pathOf('../demo/main.ts') };

const args = process.argv.slice(2);
const asked = askedProgram(args);
if (asked === undefined) await runWithFittingNode(SETTLED, args);
else if (existsSync(PROGRAMS[asked.name])) await runWithFittingNode(PROGRAMS[asked.name], asked.args);
else {
  process.stderr.write(`This installation of settled has no ${asked.name}: run it from a checkout of settled.\n`);
  process.exit(EXIT_NO_SUCH_PROGRAM);
}

/** The program that is named, with its arguments; `settled help NAME` asks it for its help. Else undefined. */
function askedProgram(given) {
  const before = given.findIndex((word) => word !== '--json');
  const json = given.slice(0, Math.max(0, before));
  const [first, second, ...more] = given.slice(json.length);
  if (Object.hasOwn(PROGRAMS, first ?? '')) {
    return { name: first, args: [...given.slice(json.length + 1), ...json] };
  }
  if (first !== 'help' || !Object.hasOwn(PROGRAMS, second ?? '')) return undefined;
  return { name: second, args: second === 'demo' ? ['--help', ...more, ...json] : ['help', ...more, ...json] };
}

function pathOf(script) {
  return fileURLToPath(new URL(script, import.meta.url));
}
