import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { FAULT_CODES } from '../../src/fault.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));

it('docs/errors.md: has no fault that nothing in the source raises', () => {
  const sources = readdirSync(SOURCE, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !['fault.ts', 'exit.ts'].includes(entry.name))
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
    .join('\n');
  expect(FAULT_CODES.filter((code) => !sources.includes(`'${code}'`))).toEqual([]);
});
