import { runProcess } from '../src/terminal/process.ts';
import { run } from './cli/commands.ts';
import { failure } from './cli/exit.ts';

/** `settled sandbox …`: bin/settled.mjs runs this with what follows the word `sandbox`. */
runProcess(run, failure, Date.now);
