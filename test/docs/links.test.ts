import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { anchorsOf } from '../support/markdown.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const folders = ['docs', 'examples', 'sandbox'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
);
const pages = ['README.md', 'CHANGELOG.md', 'SECURITY.md', ...folders].filter((file) => file.endsWith('.md'));
const text = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const places = new Map(pages.map((page) => [page, new Set(anchorsOf(text(page), /#+/))]));

/** The links of a page: the file which each leads to, and the heading, if it names one. */
function linksOf(page: string): { to: string; heading: string }[] {
  return [...text(page).matchAll(/\]\((?!\w+:)([^)#]*)(?:#([^)]+))?\)/g)].map(([, file = '', heading = '']) => ({
    to: file === '' ? page : relative(ROOT, join(ROOT, dirname(page), file)),
    heading,
  }));
}

it('links of the documents lead only to files and headings that exist', () => {
  const broken = pages.flatMap((page) =>
    linksOf(page)
      .filter(({ to, heading }) => (heading === '' ? !existsSync(join(ROOT, to)) : !places.get(to)?.has(heading)))
      .map(({ to, heading }) => `${page} -> ${to}#${heading}`),
  );
  expect(broken).toEqual([]);
});

/** The paths that a page names, with one name for each alternative in braces. */
function pathsOf(page: string): string[] {
  const named = text(page).matchAll(/`((?:bench|bin|migrations|prove|sandbox|src|test)\/[\w.*{},/-]+)`/g);
  return [...named].flatMap(([, path = '']) => {
    const [, before = '', choice, after = ''] = /^([^{]*)\{([^}]*)\}(.*)$/.exec(path) ?? [];
    return choice === undefined ? [path] : choice.split(',').map((one) => `${before}${one}${after}`);
  });
}

/** Whether a file or folder has this path; `*` in its last part stands for any characters. */
function exists(path: string): boolean {
  if (!path.includes('*')) return existsSync(join(ROOT, path));
  const [before = '', after = ''] = basename(path).split('*');
  const beside = readdirSync(join(ROOT, dirname(path)));
  return beside.some((name) => name.startsWith(before) && name.endsWith(after));
}

it('pages name only files that exist', () => {
  const named = pages.flatMap((page) => pathsOf(page).map((path) => ({ page, path })));
  expect(named.length).toBeGreaterThan(100);
  expect(named.filter(({ path }) => !exists(path))).toEqual([]);
});

it('pages link the words of the glossary', () => {
  const used = pages.filter((page) => linksOf(page).some(({ to }) => to === 'docs/glossary.md'));
  expect(used.length).toBeGreaterThan(5);
});

it('the index of the decisions names each of them, by its title', () => {
  const folder = join(ROOT, 'docs/decisions');
  const titles = readdirSync(folder)
    .filter((file) => /^\d/.test(file))
    .map((file) => [file, (/^# \d+: (.*)$/m.exec(readFileSync(join(folder, file), 'utf8')) ?? [])[1]?.toLowerCase()]);
  const named = [...text('docs/decisions/README.md').matchAll(/^- \[\d+\]\((.*)\): (.*)$/gm)];
  expect(named.map(([, file, title]) => [file, title?.toLowerCase()]).sort()).toEqual(titles);
});
