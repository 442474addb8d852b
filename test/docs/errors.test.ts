import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { EXIT, EXIT_MEANINGS, EXIT_OF_COMMAND, exitOfFault, exitOfProblem } from '../../src/cli/exit.ts';
import { KEPT_REASONS } from '../../src/domain/fact.ts';
import { FAULT_CODES } from '../../src/fault.ts';
import { PROBLEM_CODES } from '../../src/http/problem.ts';
import { ANSWERS } from '../../src/receive/answers.ts';
import type { Diagnosis } from '../../src/receive/diagnosis.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/errors.md'), 'utf8');

/** Where the page explains what a delivery can turn out to be. */
const SECTION_OF: Record<Diagnosis['code'], 'verdicts' | 'refusals'> = {
  authentic: 'verdicts',
  stale_clock: 'verdicts',
  malformed_signature: 'verdicts',
  malformed_timestamp: 'verdicts',
  unusable_secret: 'verdicts',
  altered_body: 'verdicts',
  altered_timestamp: 'verdicts',
  wrong_secret: 'verdicts',
  signed_otherwise: 'verdicts',
  wrong_secret_or_altered_body: 'verdicts',
  other_header_names: 'refusals',
  other_method: 'refusals',
  content_encoding: 'refusals',
  body_size: 'refusals',
};

function diagnoses(section: 'verdicts' | 'refusals'): string[] {
  return Object.entries(SECTION_OF).flatMap(([code, found]) => (found === section ? [code] : []));
}

/** The rows of a section's tables, by their first cell without its backticks. */
function rows(section: string): Map<string, string[]> {
  const text = page.split(/^## /m).find((part) => part.startsWith(section)) ?? '';
  const lines = text.split('\n').filter((line) => /^\| (?:`|\d)/.test(line));
  return new Map(
    lines.map((line) => {
      const [first = '', ...others] = line.split('|').slice(1, -1);
      return [first.trim().replaceAll('`', ''), others.map((cell) => cell.trim())] as const;
    }),
  );
}

const codes = (section: string) => [...rows(section).keys()].sort();
const sorted = (names: Iterable<string>) => [...new Set(names)].sort();

const hookProblems = [
  ...Object.values(ANSWERS)
    .filter(({ status }) => status >= 300)
    .map(({ status, body }) => ({ status, code: JSON.parse(String(body)).title as string })),
  // Every listener answers other addresses so.
  { status: 404, code: 'not_found' },
];

describe('docs: errors', () => {
  it('lists every exit code', () => {
    const listed = [...rows('Exit codes').keys()].filter((code) => /^\d/.test(code));
    expect(listed).toEqual(Object.keys(EXIT_MEANINGS));
    expect(sorted(Object.values(EXIT).map(String))).toEqual(sorted(listed));
  });

  it("lists the command's own codes with their exit codes", () => {
    const listed = [...rows('Exit codes')].filter(([code]) => !/^\d/.test(code));
    const exits = listed.map(([code, [exit]]) => [code, Number(exit)]);
    expect(Object.fromEntries(exits)).toEqual(EXIT_OF_COMMAND);
  });

  it('lists every fault with the exit code that it has', () => {
    expect(codes('Faults')).toEqual(sorted(FAULT_CODES));
    const exits = [...rows('Faults')].map(([code, [exit]]) => [code, exit]);
    // A fault that ends no process would be a bug if it did.
    const expected = FAULT_CODES.map((code) => [code, String(exitOfFault(code)).replace('70', '–')]);
    expect(new Map(exits as [string, string][])).toEqual(new Map(expected as [string, string][]));
  });

  it('lists every problem of the API with the exit code that it gives', () => {
    expect(codes('Problems of the API')).toEqual(sorted(PROBLEM_CODES));
    for (const [code, [, exit]] of rows('Problems of the API')) {
      expect([code, exit]).toEqual([code, String(exitOfProblem(code))]);
    }
  });

  it('lists every refusal of the hook with its status', () => {
    expect(codes('Answers of the hook')).toEqual(sorted(hookProblems.map(({ code }) => code)));
    for (const { code, status } of hookProblems) {
      expect([code, rows('Answers of the hook').get(code)?.[0]]).toEqual([code, String(status)]);
    }
  });

  it('lists every reason of a rejection', () => {
    expect(codes('Reasons of rejections')).toEqual(sorted(KEPT_REASONS));
  });

  it('lists every other diagnosis of a refused delivery', () => {
    expect(codes('Diagnoses of refused deliveries')).toEqual(sorted(diagnoses('refusals')));
  });

  it('lists every verdict of verify', () => {
    expect(codes('Verdicts of `settled verify`')).toEqual(sorted(diagnoses('verdicts')));
  });

  it('says of every code what it means and what to do', () => {
    const sections = [
      'Exit codes',
      'Faults',
      'Problems of the API',
      'Answers of the hook',
      'Reasons of rejections',
      'Diagnoses of refused deliveries',
      'Verdicts',
    ];
    for (const [code, cells] of sections.flatMap((section) => [...rows(section)])) {
      expect([code, cells.filter((cell) => cell === '')]).toEqual([code, []]);
    }
  });

  it('has no fault that nothing in the source raises', () => {
    const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !['fault.ts', 'exit.ts'].includes(entry.name))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8'))
      .join('\n');
    expect(FAULT_CODES.filter((code) => !sources.includes(`'${code}'`))).toEqual([]);
  });
});
