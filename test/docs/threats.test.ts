import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const page = read('docs/threats.md');

type Link = { text: string; file: string };
type Row = { number: number; cells: string[]; code: Link[]; tests: Link[] };

const rows: Row[] = page.split('\n').flatMap((line) => {
  if (!/^\| \d+ \|/.test(line)) return [];
  const [number, ...cells] = line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());
  return [{ number: Number(number), cells, code: linksOf(cells[2] ?? ''), tests: linksOf(cells[3] ?? '') }];
});

function linksOf(cell: string): Link[] {
  return [...cell.matchAll(/\[([^\]]+)\]\(\.\.\/([^)]+)\)/g)].map(([, text = '', file = '']) => ({ text, file }));
}

describe('docs/threats.md', () => {
  it('has a row for each defended threat, numbered, with its code and its tests', () => {
    expect(rows.length).toBeGreaterThan(40);
    expect(rows.map(({ number }) => number)).toEqual(rows.map((_, at) => at + 1));
    expect(rows.filter(({ cells, code, tests }) => cells.length !== 4 || !code.length || !tests.length)).toEqual([]);
  });

  it('names code that there is, by its own name', () => {
    const named = rows.flatMap(({ code }) => code);
    expect(named.filter(({ text, file }) => !existsSync(join(ROOT, file)) || !file.endsWith(text))).toEqual([]);
  });

  it('names tests that there are, by titles that they have', () => {
    const named = rows.flatMap(({ number, tests }) => tests.map((test) => ({ number, ...test })));
    const isThere = ({ text, file }: Link) =>
      /^test\/(.*\.test|store\/contract\/[\w-]+)\.ts$/.test(file) && titlesOf(file).includes(text);
    expect(named.filter((test) => !isThere(test))).toEqual([]);
  });

  it('says what is not defended', () => {
    const [, rest = ''] = page.split('\n## Not defended\n');
    expect(rest.match(/^- \*\*/gm)?.length).toBeGreaterThan(10);
  });
});

/** The titles of a file's tests and of what they are in. */
function titlesOf(file: string): string[] {
  if (!existsSync(join(ROOT, file))) return [];
  const quoted = /(?:\b(?:it|describe)|\))\(\s*(?:'((?:[^'\\\n]|\\.)*)'|`([^`]*)`|"([^"\n]*)")/g;
  const found = [...read(file).matchAll(quoted)].map(
    ([, single, template, double]) => single ?? template ?? double ?? '',
  );
  return found.map((title) => title.replaceAll("\\'", "'"));
}
