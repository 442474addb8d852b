import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { REJECTION_REASONS } from '../../src/vocabulary.ts';
import { testFolder } from '../support/app.ts';

const DOCUMENT = readFileSync(new URL('../../docs/signature.md', import.meta.url), 'utf8');
const vectors = JSON.parse(readFileSync(new URL('../vectors/signatures.json', import.meta.url), 'utf8'));

describe('docs/signature.md', () => {
  it('names every reason for which a delivery is refused, and no other', () => {
    const named = [...DOCUMENT.matchAll(/`((?:signature|timestamp|secret)_[a-z]+)`/g)].map(([, reason]) => reason);
    expect([...new Set(named)].sort()).toEqual([...REJECTION_REASONS].sort());
  });

  it('has commands that verify the delivery when they are pasted', ({ skip }) => {
    for (const [tool, argument] of [
      ['bash', '--version'],
      ['openssl', 'version'],
    ] as const) {
      skip(spawnSync(tool, [argument]).error !== undefined, `${tool} is not installed, and the commands need it`);
    }
    const script = [...DOCUMENT.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block).join('\n');
    const output = execFileSync('bash', ['-euc', script], { cwd: testFolder(), encoding: 'utf8' });
    const [{ hex, base64 }] = vectors;
    const base64url = base64.replaceAll('+', '-').replaceAll('/', '_').replace('=', '');
    const lines = output.trimEnd().split('\n');
    expect(lines.slice(0, -1)).toEqual([
      `should be  ${hex}`,
      `came as    ${hex}`,
      'the signature is right',
      base64,
      base64url,
    ]);
    expect(Number(lines.at(-1))).toBeCloseTo(Date.now() / 1000 - 1_760_000_000, -1);
  });
});
