/** Set by `--mode long`, for the `prove:` commands of package.json that run tests at length. */
const isLong = process.env.SETTLED_TEST_LENGTH === 'long';

/** How often a test repeats its work: enough to notice a fault in the test command, more in a proof. */
export function times(inTestCommand: number, inProof: number): number {
  return isLong ? inProof : inTestCommand;
}
