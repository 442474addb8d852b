import { writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { command, flag, type Given, type Options, say, text, whole } from '../prove/harness/proof.ts';
import type { RunOptions } from './measure.ts';
import { measureOnce, measurePatiently } from './patience.ts';
import { type Found, report, verdicts } from './report.ts';
import { inWorkspace } from './workspace.ts';

/** The frame of a comparison: the options that all have, what it is run with, and how its figures are shown. */

const OPTIONS = {
  quick: flag('three short rounds, for a first impression'),
  rounds: whole('rounds of each comparison (5; quick 3)', null, { max: 100 }),
  seconds: whole('how long deliveries are sent in a round (5; quick 1)', null, { max: 60 }),
  connections: whole('keep-alive connections of the client', 64, { max: 1_000 }),
  patient: flag('wait for an idle machine before each measurement, and repeat disturbed ones'),
  json: text('FILE', "also write every round's figures"),
};

/** Runs a comparison as a command: prints the figures of its parts. Fails on errors, not on figures. */
export function compare<O extends Options>(
  name: string,
  own: O,
  measureParts: (given: Given<O> & Given<typeof OPTIONS>, run: RunOptions) => Promise<Found[]>,
  isOneRun: (given: Given<O>) => boolean = () => false,
): Promise<never> {
  return command<Options>(name, { ...own, ...OPTIONS }, async (all) => {
    const given = all as Given<O> & Given<typeof OPTIONS>;
    const { quick, connections, patient, json } = given;
    const rounds = isOneRun(given) ? 1 : (given.rounds ?? (quick ? 3 : 5));
    const seconds = given.seconds ?? (quick ? 1 : 5);
    const onProgress = showProgress();
    const found = await inWorkspace((workspace) =>
      measureParts(given, {
        workspace,
        rounds,
        forMs: seconds * 1000,
        warmUp: quick ? 2_000 : 5_000,
        connections,
        measureWith: patient ? measurePatiently : measureOnce,
        onProgress,
      }),
    );
    onProgress('');
    const machine = circumstances({ rounds, seconds, connections });
    say(`${machine}\n\n${report(found)}`);
    if (availableParallelism() > 2)
      say(`\nThe design's figures are for two cores: \`taskset -c 0,1 npm run ${name}\`.`);
    if (json === null) return 0;
    const parts = Object.fromEntries(found.map(({ part, rounds: figures }) => [part, figures]));
    const shown = { machine, ...given, rounds, seconds, ...parts, verdicts: verdicts(found) };
    writeFileSync(json, `${JSON.stringify(shown, null, 2)}\n`);
    return 0;
  });
}

/** What a run was made on, and how. */
export function circumstances(plan: { rounds: number; seconds: number; connections: number }): string {
  const { rounds, seconds, connections } = plan;
  const machine = `Node ${process.versions.node}, ${process.platform} ${process.arch}, ${availableParallelism()} cores`;
  return `${machine}; ${rounds === 1 ? '1 round' : `${rounds} rounds`} of ${seconds} s, ${connections} connections of the client`;
}

/** One line on a terminal, which each step overwrites. */
function showProgress(): (text: string) => void {
  if (!process.stderr.isTTY) return () => {};
  return (text) => process.stderr.write(`\r\x1b[K${text}`);
}
