import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COMMANDS } from '../../sandbox/cli/commands.ts';
import { EXIT, EXIT_MEANINGS } from '../../sandbox/cli/exit.ts';
import type { Context } from '../../sandbox/context.ts';
import { controlRoutes } from '../../sandbox/control/routes.ts';
import { FAULTS, KNOWN_FAULTS } from '../../sandbox/fault_plans.ts';
import { SWITCHES } from '../../sandbox/options.ts';
import { SCENARIOS } from '../../sandbox/scenarios.ts';
import { blocksIn } from '../support/markdown.ts';
import { paste, skipWithout, spawnSandbox } from '../support/process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const README = readFileSync(`${ROOT}/sandbox/README.md`, 'utf8');

describe('sandbox/README.md', () => {
  it('lists every switch with its default and its other values', () => {
    const rows = Object.entries(SWITCHES).map(([name, { about, values }]) => {
      const [first, ...more] = values.map((value) => `\`${value}\``);
      return [`\`${name}\``, about, [`**${first}**`, ...more].join(', ')];
    });
    expect(tableOf('What the specification leaves open')).toEqual(rows);
  });

  it('lists every fault with what it takes', () => {
    const rows = Object.entries(KNOWN_FAULTS).map(([name, { about, target, takes }]) => {
      const told = Object.entries(takes).map(([parameter, value]) => `\`${parameter}\`: ${value}`);
      return [`\`${name}\``, target, about, told.join('<br>') || 'nothing'];
    });
    expect(Object.keys(KNOWN_FAULTS)).toEqual(Object.keys(FAULTS));
    expect(tableOf('Fault plans')).toEqual(rows);
  });

  it('lists every request of the control API', () => {
    // Only what is registered is looked at; nothing is called.
    const { stack } = controlRoutes({ options: {} } as unknown as Context);
    const routes = stack.flatMap(({ route }) => {
      const { methods = {} } = (route ?? {}) as { methods?: Record<string, boolean> };
      return Object.keys(methods).map((method) => `${method.toUpperCase()} ${route?.path}`);
    });
    const told = tableOf('The control API').map(([request]) => request?.replaceAll('`', ''));
    expect(routes.length).toBeGreaterThan(20);
    expect(told.sort()).toEqual(routes.sort());
  });

  it('lists every scenario with what must be true then', () => {
    const rows = Object.entries(SCENARIOS).map(([name, { about, verdict }]) => {
      return [`\`${name}\``, about, verdict.map(({ says }) => says).join('; ')];
    });
    expect(tableOf('Scenarios')).toEqual(rows);
  });

  it('lists the exit codes', () => {
    expect(tableOf('Exit codes')).toEqual(Object.entries(EXIT_MEANINGS));
    expect(Object.values(EXIT).map(String)).toEqual(Object.keys(EXIT_MEANINGS));
  });

  it('lists the options of serving', () => {
    const { options = {} } = COMMANDS.find(({ name }) => name === 'serve') ?? {};
    const rows = Object.entries(options).map(([name, { value, about }]) => {
      return [`\`--${name}${value === undefined ? '' : ` ${value}`}\``, about];
    });
    expect(tableOf('Start it')).toEqual(rows);
  });

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

/** The cells of the section's table, without its heading. */
function tableOf(title: string): string[][] {
  const lines = sectionOf(title)
    .split('\n')
    .filter((line) => line.startsWith('| '));
  return lines.slice(1).map((line) => line.slice(2, -2).split(' | '));
}
