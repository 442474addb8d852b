/** Set by `--mode long`: the `prove:` commands of package.json that run tests at length. */
const isLong = process.env.SETTLED_TEST_LENGTH === 'long';

/** How often a test repeats what it does: enough to fail for a fault in the test command, more in a proof. */
export function times(inTestCommand: number, inProof: number): number {
  return isLong ? inProof : inTestCommand;
}
