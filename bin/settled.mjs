#!/usr/bin/env node
// The `settled` command, for any Node: the work is done by src/cli/main.ts on a Node that fits.
import { fileURLToPath } from 'node:url';
import { runWithFittingNode } from './fitting-node.mjs';

await runWithFittingNode(
  fileURLToPath(new URL('../src/cli/main.ts', import.meta.url)),
  process.argv.slice(2),
);
