import type { Explanation } from '../explain/explain.ts';
import { type Block, hanging, padded, printable, prose } from '../terminal/output.ts';
import { ageOf, paint, type Screen, utcTime } from '../terminal/screen.ts';

/** An order's explanation for a person: the answer, what happened in order of time, and what happens next. */
export function timelineLines({ answer, entries, next }: Explanation): Block[] {
  return [
    (screen) => hanging(screen, '', printable(answer), 'strong'),
    '',
    heading('What happened:'),
    (screen) => entryLines(screen, entries),
    '',
    heading('What happens next:'),
    ...next.map((line) => prose(line, 2)),
  ];
}

function heading(text: string): Block {
  return (screen) => [paint(screen, 'strong', text)];
}

/** A narrower terminal does not say how long ago something was. */
const WIDE_COLUMNS = 100;

/** In a pipe the times are exact. What answers may not be settled, so all of it is made printable. */
function entryLines(screen: Screen, entries: Explanation['entries']): string[] {
  const { columns } = screen;
  const shown = entries.map(({ at, ...entry }) => {
    const age = columns !== null && columns >= WIDE_COLUMNS ? `, ${ageOf(screen, at)}` : '';
    return { ...entry, time: printable(columns === null ? at : utcTime(at)) + age };
  });
  const most = (lengths: number[]) => Math.max(0, ...lengths);
  const times = most(shown.map(({ time }) => time.length));
  const kinds = most(shown.map(({ kind }) => printable(kind).length));
  return shown.flatMap(({ time, kind, summary, details }) => {
    const left = `  ${paint(screen, 'quiet', padded(time, times))}  ${padded(printable(kind), kinds)}  `;
    const [first = '', ...more] = hanging(screen, left, printable(summary));
    const indent = first.trimEnd() === left.trimEnd() ? 8 : times + kinds + 8;
    return [first, ...more, ...details.flatMap((one) => hanging(screen, ' '.repeat(indent), printable(one)))];
  });
}
