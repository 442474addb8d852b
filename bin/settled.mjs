#!/usr/bin/env node
// The `settled` command, for any Node: the work is done by src/cli/main.ts on a Node that fits. `settled sandbox` is
// another program, sandbox/main.ts, which may be left out of an installation.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runWithFittingNode } from './fitting-node.mjs';

const EXIT_NO_SANDBOX = 69;

const SETTLED = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
const SANDBOX = fileURLToPath(new URL('../sandbox/main.ts', import.meta.url));

const args = process.argv.slice(2);
const sandboxArgs = forSandbox(args);
if (sandboxArgs === undefined) await runWithFittingNode(SETTLED, args);
else if (existsSync(SANDBOX)) await runWithFittingNode(SANDBOX, sandboxArgs);
else {
  process.stderr.write('This installation of settled has no sandbox: run it from a checkout of settled.\n');
  process.exit(EXIT_NO_SANDBOX);
}

/** What follows the word `sandbox`; `settled help sandbox` asks the sandbox for its help. Undefined for other commands. */
function forSandbox(given) {
  const before = given.findIndex((word) => word !== '--json');
  const json = given.slice(0, Math.max(0, before));
  const [first, second, ...more] = given.slice(json.length);
  if (first === 'sandbox') return [...given.slice(json.length + 1), ...json];
  return first === 'help' && second === 'sandbox' ? ['help', ...more, ...json] : undefined;
}
