import { type Clock, waitInWords } from '../work/clock.ts';
import { printable, width } from './output.ts';
import type { Screen } from './screen.ts';

/** How far long work is: a line that changes on a terminal, and a line now and then in a pipe. */

/** How often the line changes on a terminal, and how often there is a line in a pipe. */
const EVERY_MS = { terminal: 200, pipe: 15_000 } as const;
const BAR_COLUMNS_MAX = 30;
/** A bar that is given fewer columns is left out. */
const BAR_COLUMNS_MIN = 8;

/** `words`: how much of it is done. `leftMs`: null if that is not known. */
export type Progress = { done: number; all: number; words: string; leftMs: number | null };

/** `show` says how far it is; `end` takes the line away that still changes, and lets the next `show` begin at once. */
export function openProgress(
  print: (text: string) => Promise<boolean>,
  { columns }: Pick<Screen, 'columns'>,
  clock: Pick<Clock, 'monotonicMs'>,
) {
  const everyMs = columns === null ? EVERY_MS.pipe : EVERY_MS.terminal;
  let isOpen = false;
  let lastMs = Number.NEGATIVE_INFINITY;
  return {
    async show(progress: Progress): Promise<void> {
      if (clock.monotonicMs() - lastMs < everyMs) return;
      lastMs = clock.monotonicMs();
      const text = printable(wordsOf(progress));
      if (columns === null) {
        await print(`${text}\n`);
        return;
      }
      isOpen = true;
      // The line must not reach the last column: the terminal would begin another one.
      const line = `${barOf(progress, columns - width(text) - 2)}${text}`;
      await print(`\r\x1b[K${line.slice(0, columns - 1)}`);
    },
    async end(): Promise<void> {
      lastMs = Number.NEGATIVE_INFINITY;
      if (isOpen) await print('\r\x1b[K');
      isOpen = false;
    },
  };
}

function wordsOf({ words, leftMs }: Progress): string {
  const left = leftMs === null ? '' : `, about ${waitInWords(leftMs)} left`;
  return `${words}${left}`;
}

function barOf({ done, all }: Progress, columns: number): string {
  const inner = Math.min(BAR_COLUMNS_MAX, columns - 3);
  if (inner < BAR_COLUMNS_MIN) return '';
  const full = Math.min(inner, Math.floor((inner * done) / Math.max(1, all)));
  return `[${'='.repeat(full)}${' '.repeat(inner - full)}] `;
}
