import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const text = (file: string) => readFileSync(`${ROOT}/${file}`, 'utf8');

/** Steps of a delivery, by their names in the source and the file that has them. */
const steps = [...text('docs/source.md').matchAll(/^\| .* \| (.*) \| `(src\/[\w/.]+)` \|$/gm)].flatMap(
  ([, names = '', file = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({ name, file })),
);

it('has the steps of a delivery', () => {
  expect(steps.length).toBeGreaterThanOrEqual(15);
});

it.each(steps)('$name stands in $file', ({ name, file }) => {
  expect(text(file)).toMatch(new RegExp(`(?:function\\*? ?|const |^ +\\*)${name}\\b`, 'm'));
});

it('tables and functions that it names for those who add something are where it says', () => {
  const named = [...text('docs/source.md').matchAll(/`(\w+)`[^`|]{0,40}? (?:in|of)\s+`(src\/[\w/.]+\.ts)`/g)];
  expect(named.length).toBeGreaterThanOrEqual(5);
  for (const [, name = '', file = ''] of named)
    expect(text(file), `${name} in ${file}`).toMatch(new RegExp(`\\b${name}\\b`));
});
