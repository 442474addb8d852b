import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PAST_RULES, RULES } from '../../src/domain/decision.ts';
import { ATTENTION_KINDS } from '../../src/domain/matter.ts';
import { NOTICE_TYPES } from '../../src/domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES, TRANSITIONS } from '../../src/domain/order.ts';
import { explore } from '../support/orders.ts';

const DOCUMENT = readFileSync(new URL('../../docs/states.md', import.meta.url), 'utf8');

/** The lines under a second-level heading. */
function section(heading: string): string[] {
  const [, after] = DOCUMENT.split(`\n## ${heading}\n`);
  if (after === undefined) throw new Error(`docs/states.md has no heading ${heading}`);
  return (after.split('\n## ')[0] as string).split('\n');
}

/** The names that a section's list explains, each in one line. */
function explained(heading: string): string[] {
  const items = section(heading).filter((line) => line.startsWith('- '));
  return items.map((line) => /^- `([a-z_.]+)`: \S.*\.$/.exec(line)?.[1] ?? `unreadable: ${line}`);
}

describe('docs/states.md', () => {
  it.each([
    ['States', ORDER_STATES],
    ['Rules', RULES],
    ['Flags', FLAGS],
    ['Hold reasons', HOLD_REASONS],
    ['Attention', ATTENTION_KINDS],
    ['Notices', NOTICE_TYPES],
  ])('explains under %s each name that the code knows, in its order', (heading, vocabulary) => {
    expect(explained(heading)).toEqual([...vocabulary]);
  });

  it('explains each rule that only stored history names', () => {
    const items = section('Rules').filter((line) => line.startsWith('* '));
    expect(items.map((line) => /^\* `([a-z_]+)`: /.exec(line)?.[1])).toEqual([...PAST_RULES]);
  });

  it('has the transition table of the code', () => {
    const rows = section('Transitions').filter((line) => line.startsWith('| `'));
    const names = rows.map((row) => [...row.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name));
    expect(names).toEqual(ORDER_STATES.map((from) => [from, ...TRANSITIONS[from]]));
  });

  it('draws each transition, its edge naming every rule that makes it', () => {
    const edges = [...DOCUMENT.matchAll(/^ {2}([a-z_]+) --> ([a-z_]+): (.+)$/gm)];
    const drawn = edges.map(([, from, to, rules]) => `${from} → ${to}: ${rules?.split(', ').sort().join(', ')}`);
    const made = [...explore().moves.values()].map(
      ({ from, to, rules }) => `${from} → ${to}: ${[...rules].sort().join(', ')}`,
    );
    expect(drawn.sort()).toEqual(made.sort());
  });
});
