import { runProcess } from '../terminal/process.ts';
import { systemClock } from '../work/clock.ts';
import { run } from './commands.ts';
import { failure } from './exit.ts';

/** The process of a `settled` command. */
runProcess(run, failure, systemClock.nowMs);
