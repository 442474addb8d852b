import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProgram } from '../../prove/harness/program.ts';
import { COMPILE_CACHE, ROOT } from '../../prove/harness/settled.ts';

/** Runs a proof to its end, with the bundles of the test command if there are any. */
export async function runProof(name: string, ...options: string[]): Promise<{ code: number | null; output: string }> {
  const bundled = process.env.SETTLED_TEST_PROGRAMS;
  const environment = {
    TMPDIR: tmpdir(),
    NODE_COMPILE_CACHE: COMPILE_CACHE,
    ...(bundled !== undefined && { SETTLED_TEST_PROGRAMS: bundled }),
  };
  const command = [process.execPath, join(ROOT, 'prove', `${name}.ts`), ...options];
  const { code, stdout, stderr } = await startProgram(command, environment).finished;
  return { code, output: stdout + stderr };
}
