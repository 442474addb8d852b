import { OutputError } from './failure.ts';

/** Resolves when all is written; false where the reader has seen enough and is gone, as `head` is, which is no error. */
export function print(text: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error?: NodeJS.ErrnoException | null) => {
      if (!error || error.code === 'EPIPE') resolve(!error);
      else reject(new OutputError(`The output cannot be written (${error.code}), and is not whole.`));
    });
  });
}
