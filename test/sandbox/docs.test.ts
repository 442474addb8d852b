import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { blocksIn } from '../support/markdown.ts';
import { paste, skipWithout, spawnSandbox } from '../support/process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(`${ROOT}/sandbox/README.md`, 'utf8');

describe('sandbox/README.md', () => {
  it('shows commands that do what it says when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash', 'curl']);
    const [, options = ''] = /^npm run -s sandbox -- (--api-key .*)$/m.exec(README) ?? [];
    const sandbox = spawnSandbox([...options.split(' '), '--listen', '127.0.0.1:0', '--json']);
    const { url } = JSON.parse(await sandbox.line(/"url"/));
    const blocks = ['Walk through it', 'The clock'].map((title) => blocksIn(sectionOf(title))[0]);
    const inline = [...README.matchAll(/`(curl [^`]*)`/g)].map(([, command]) => command);
    const script = [...blocks, ...inline]
      .join('\n')
      .replaceAll('http://127.0.0.1:8790', url)
      .replace(/^npm run -s sandbox -- clock 2h30m$/m, `$& --url ${url}`)
      .replaceAll('npm run -s sandbox --', `'${process.execPath}' sandbox/main.ts`);
    const output = paste(script);
    expect(output).toContain('"webhookSecret":');
    expect(output).toMatch(/payment status +COMPLETED/);
    // The fault hits what it is planned for: both payment events of the second link, and nothing of the first.
    expect(output.match(/payment_status_changed \w+ +waiting +1 +3 +duplicate/g)).toHaveLength(2);
    expect(output).toMatch(/pay_\w+ REFUNDED/);
    expect(output).not.toContain('No event was sent');
    // The turn ends at its time, and what it took has passed of that: a slow machine is less than 18 hours ahead.
    expect(output).toMatch(/^turned by 18h, now .*\nThe sandbox is (18h|17h59m[\ds]*) ahead/m);
    expect(output.match(/payment_status_changed \w+ +given_up +7 +7 +- +connect ECONNREFUSED/g)).toHaveLength(3);
    expect(output).toContain('"status":"REFUNDED"');
    expect(output).toContain('"signature":"base64"');
  });
});

function sectionOf(title: string): string {
  const section = README.split('\n## ').find((part) => part.startsWith(`${title}\n`));
  if (section === undefined) throw new Error(`sandbox/README.md has no section "${title}"`);
  return section;
}
