import type { Explanation } from '../explain/explain.ts';
import { type Block, hanging, padded, printable, prose, strong } from '../terminal/output.ts';
import { ageOf, paint, type Screen, utcTime } from '../terminal/screen.ts';
import { defineCommand } from './command.ts';
import { orderPath } from './orders.ts';

export const why = defineCommand({
  usage: 'why ORDER',
  about: "explain an order's state: how it got there and what happens next",
  details: [
    'ORDER is the reference of an order.',
    'First comes the answer, then everything that is known of the order, in order of time,',
    'then what settled does next, and what a person should do.',
  ],
  examples: ['settled why order-8001'],
  async run({ first, server }) {
    const explained = await server().get<Explanation>(`${orderPath(first)}/timeline`);
    return { data: explained, lines: timelineLines(explained) };
  },
});

/** An order's explanation for a person: the answer, what happened in order of time, and what happens next. */
function timelineLines({ answer, entries, next }: Explanation): Block[] {
  return [
    (screen) => hanging(screen, '', printable(answer), 'strong'),
    '',
    strong('What happened:'),
    (screen) => entryLines(screen, entries),
    '',
    strong('What happens next:'),
    ...next.map((line) => prose(line, 2)),
  ];
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
