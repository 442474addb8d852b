import type { Explanation } from '../explain/explain.ts';
import { type Block, padded, printable, prose, wrap } from './output.ts';
import { paint, type Screen, timeForms } from './screen.ts';

/** An order's explanation for a person: the answer, what happened in order of time, and what happens next. */
export function timelineLines({ answer, entries, next }: Explanation): Block[] {
  return [
    answerLines(answer),
    '',
    heading('What happened:'),
    (screen) => entryLines(screen, entries.map(printableEntry)),
    '',
    heading('What happens next:'),
    ...next.map((line) => prose(line, INDENT)),
  ];
}

const INDENT = 2;
/** A summary that is given fewer columns stands below its time. */
const SUMMARY_COLUMNS_MIN = 40;

function answerLines(answer: string): Block {
  return (screen) => wrap(printable(answer), screen.columns ?? Number.POSITIVE_INFINITY).map(painted(screen));
}

function heading(text: string): Block {
  return (screen) => [paint(screen, 'strong', text)];
}

const painted = (screen: Screen) => (line: string) => paint(screen, 'strong', line);

type Entry = { at: string; kind: string; summary: string; details: readonly string[] };

/** All of it: what answers may not be settled. */
function printableEntry({ at, kind, summary, details }: Entry): Entry {
  return { at: printable(at), kind: printable(kind), summary: printable(summary), details: details.map(printable) };
}

/** In a pipe the times are exact; on a terminal they are as full as there is room for, and never without UTC. */
function entryLines(screen: Screen, entries: readonly Entry[]): string[] {
  const kinds = Math.max(0, ...entries.map(({ kind }) => kind.length));
  const { columns } = screen;
  if (columns === null) {
    return entries.flatMap(({ at, kind, summary, details }) => [
      `  ${at}  ${kind.padEnd(kinds)}  ${summary}`,
      ...details.map((detail) => `${' '.repeat(at.length + kinds + 8)}${detail}`),
    ]);
  }
  const forms = entries.map(({ at }) => [...timeForms(screen, at).slice(0, 2), at.replace(/\.\d+Z$/, 'Z')]);
  const timesOf = (level: number) => Math.max(0, ...forms.map((form) => (form[level] ?? '').length));
  const before = (level: number) => INDENT + timesOf(level) + GAP + kinds + GAP;
  const beside = LEVELS.find((level) => columns - before(level) >= SUMMARY_COLUMNS_MIN);
  const level = beside ?? LEVELS.find((one) => before(one) <= columns) ?? 2;
  const indent = beside === undefined ? INDENT * 2 : before(level);
  const text = (one: string, more: number) =>
    wrap(one, columns - indent - more).map((line) => ' '.repeat(indent + more) + line);
  return entries.flatMap(({ kind, summary, details }, at) => {
    const time = paint(screen, 'quiet', padded(forms[at]?.[level] ?? '', timesOf(level)));
    const head = `${' '.repeat(INDENT)}${time}${' '.repeat(GAP)}${kind.padEnd(kinds)}`;
    const [first = '', ...more] = text(summary, 0);
    const told = details.flatMap((detail) => text(detail, 2));
    if (beside === undefined) return [head.trimEnd(), first, ...more, ...told];
    return [`${head}${' '.repeat(GAP)}${first.slice(indent)}`, ...more, ...told];
  });
}

const LEVELS = [0, 1, 2] as const;
const GAP = 2;
