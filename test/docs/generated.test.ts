import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { TO_WRITE } from '../support/blocks.ts';
import { CHECKED_IN } from './generated.ts';

it.each(Object.entries(CHECKED_IN))('%s has what the source says: -u writes it', async (file, generate) => {
  const path = fileURLToPath(new URL(`../../${file}`, import.meta.url));
  const generated = generate(readFileSync(path, 'utf8'));
  await expect(generated).toMatchFileSnapshot(path);
  expect(generated.split('\n').filter((line) => line.includes(TO_WRITE))).toEqual([]);
});
