import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { openMetrics } from '../../src/observe/metrics.ts';
import { DELIVERY_OUTCOMES } from '../../src/receive/record.ts';
import { SHARED, SOURCES, samples } from '../support/observe.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const file = readFileSync(join(ROOT, 'docs/observability/alerts.yml'), 'utf8');

type Rule = { alert: string; expr: string; [field: string]: string | undefined };

/** The one form in which the file is written, line by line: little enough of YAML to be read by this test. */
const LINES = [
  /^groups:$/,
  /^ {2}- (name): [a-z-]+$/,
  /^ {4}rules:$/,
  /^ {6}- (alert): [A-Za-z]+$/,
  /^ {8}(expr): .+$/,
  /^ {8}(for): \d+[mh]$/,
  /^ {8}(labels): \{ severity: (?:page|ticket) \}$/,
  /^ {8}annotations:$/,
  /^ {10}(summary|description|runbook): .+$/,
];
/** What a value may be without quotes; within single ones it is anything but a quote. */
const PLAIN = /^[A-Za-z0-9][^#]*$/;
const written = file.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

/** The rules, by the lines that each has. */
function readRules(): Rule[] {
  const rules: Rule[] = [];
  for (const line of written) {
    const [, name = '', value = ''] = /^[ -]*(\w+): (.*)$/.exec(line) ?? [];
    if (name === 'alert') rules.push({ alert: value, expr: '' });
    else if (name !== 'name' && name !== '') Object.assign(rules.at(-1) ?? {}, { [name]: value });
  }
  return rules;
}

const rules = readRules();

describe('docs/observability/alerts.yml', () => {
  it('is YAML that every reader reads in the same way', () => {
    expect(written.filter((line) => !LINES.some((form) => form.test(line)))).toEqual([]);
    const values = written.map((line) => /^[ -]*\w+: (.+)$/.exec(line)?.[1] ?? 'none');
    const doubtful = values.filter((value) => {
      if (value.startsWith('{ severity: ')) return false;
      if (value.startsWith("'")) return !/^'[^']+'$/.test(value);
      return !PLAIN.test(value) || value.includes(': ') || value.endsWith(':');
    });
    expect(doubtful).toEqual([]);
  });

  it('has rules that say what is, what it means and what to do', () => {
    expect(rules.length).toBeGreaterThan(20);
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const rule of rules) {
      const missing = ['expr', 'labels', 'summary', 'description', 'runbook'].filter((field) => !rule[field]);
      expect([rule.alert, missing]).toEqual([rule.alert, []]);
    }
  });

  it('names commands that there are, with their options', () => {
    const named = rules.flatMap(({ runbook }) => [...String(runbook).matchAll(/`settled ([^`]+)`/g)]);
    expect(named.length).toBeGreaterThan(rules.length);
    const wrong = named.filter(([, line = '']) => {
      // The longest: `attention end` is another command than `attention`.
      const command = COMMANDS.filter(({ name }) => `${line} `.startsWith(`${name} `)).sort(
        (one, other) => other.name.length - one.name.length,
      )[0];
      const options = [...line.matchAll(/--([a-z-]+)/g)].map(([, option = '']) => option);
      return command === undefined || !options.every((option) => Object.hasOwn(command.options, option));
    });
    expect(wrong.map(([whole]) => whole)).toEqual([]);
  });

  it('does to many only what is selected', () => {
    const bulk = [...file.matchAll(/`settled (bulk [^`]*)`/g)].map(([, line = '']) => line);
    expect(bulk.length).toBeGreaterThan(3);
    expect(bulk.filter((line) => !/--status (dead|pending)/.test(line))).toEqual([]);
  });

  it('names alerts that there are', () => {
    const known = new Set(rules.map(({ alert }) => alert));
    const named = [...file.matchAll(/\bSettled[A-Z]\w+/g)].map(([name]) => name);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });
});

describe('docs/observability: expressions', () => {
  const readme = readFileSync(join(ROOT, 'docs/observability/README.md'), 'utf8');
  const panels = [...readme.matchAll(/`([^`\n]*settled_[^`\n]*)`/g)].map(([, expr = '']) => expr);
  const expressions = [...rules.map(({ expr }) => expr), ...panels];
  let types: Map<string, string>;
  let series: { name: string; labels: Map<string, string> }[];

  beforeAll(async () => {
    const metrics = openMetrics({ ...SOURCES, ...SHARED, deliveryOutcomes: DELIVERY_OUTCOMES });
    metrics.apiStarted();
    metrics.apiAnswered('GET /payment-links', 'ok', 1);
    const { text } = await metrics.scrape();
    types = new Map([...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', type = '']) => [name, type]));
    series = Object.keys(samples(text)).map((written) => {
      const [, name = '', inside = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(written) ?? [];
      const labels = [...inside.matchAll(/(\w+)="([^"]*)"/g)].map(
        ([, label = '', value = '']) => [label, value] as const,
      );
      return { name, labels: new Map(labels) };
    });
  });

  it('name metrics that there are, with labels and values that they have', () => {
    const wrong = expressions.flatMap(selectors).filter(({ name, matchers }) => {
      if (name === 'up') return false;
      const mine = series.filter((one) => one.name === name);
      return (
        mine.length === 0 ||
        !matchers.every(({ label, values }) =>
          values.every((value) => mine.some(({ labels }) => labels.get(label) === value)),
        )
      );
    });
    expect(wrong).toEqual([]);
    expect(panels.length).toBeGreaterThan(10);
  });

  it('sum by labels that there are', () => {
    const wrong = expressions.filter((expr) => {
      const kept = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
      const names = selectors(expr).map(({ name }) => name);
      const known = series.filter(({ name }) => names.includes(name)).flatMap(({ labels }) => [...labels.keys()]);
      return !kept.every((label) => ['instance', 'job', ...known].includes(label));
    });
    expect(wrong).toEqual([]);
  });

  it('ask for the increase of what only grows, and of nothing else', () => {
    for (const expr of expressions) {
      for (const { name, matched } of selectors(expr)) {
        const type = types.get(name.replace(/_(bucket|sum|count)$/, ''));
        const before = expr.slice(0, expr.indexOf(matched));
        const asked = /(\w+)\($/.exec(before)?.[1] ?? 'now';
        const grows = type === 'counter' || type === 'histogram';
        expect([expr, name, ['increase', 'rate'].includes(asked)]).toEqual([expr, name, grows]);
      }
    }
  });
});

type Selector = { matched: string; name: string; matchers: { label: string; values: string[] }[] };

/** The metrics of an expression, and the values of labels that it speaks of. */
function selectors(expr: string): Selector[] {
  return [...expr.matchAll(/\b((?:settled_|up\b)\w*)(?:\{([^}]*)\})?/g)].map(([matched, name = '', inside = '']) => ({
    matched,
    name,
    matchers: [...inside.matchAll(/(\w+)(?:=~|!~|!=|=)"([^"]*)"/g)].map(([, label = '', value = '']) => ({
      label,
      values: value.split('|'),
    })),
  }));
}
