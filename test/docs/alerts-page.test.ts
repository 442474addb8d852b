import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { environmentOf } from '../cli/settled.ts';
import { startTestApp, testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { skipWithout } from '../support/process.ts';
import { eventually } from '../support/timing.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/alerts.md'), 'utf8');
const [, cron = ''] = /```crontab\n(.*)\n```/.exec(page) ?? [];
const units = [...page.matchAll(/```ini\n# \/etc\/systemd\/system\/(\S+)\n(.*?)```/gs)];

/** What a cron line prints, which cron would mail. */
async function printed(line: string, environment: Record<string, string>): Promise<string> {
  const [, command = ''] = /^(?:\S+ ){5}(.*)$/.exec(line) ?? [];
  const env = { PATH: process.env.PATH, ...environment };
  const child = spawn('sh', ['-c', command.replace('/opt/settled', ROOT)], { env });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  await new Promise((ended) => child.once('close', ended));
  return Buffer.concat(chunks).toString();
}

describe('docs/alerts.md', () => {
  it('has a line for cron that prints what needs attention, and nothing if nothing does', async () => {
    const settled = await startTestApp();
    const environment = environmentOf(settled);
    expect(cron).toMatch(/^\*\/10 \* \* \* \* cd \/opt\/settled && /);
    expect(await printed(cron, environment)).toBe('');
    const link = await settled.reserve('order-1');
    await settled.deliver(link, paymentEvent({ linkId: 'pl_1', amount: '60.00' }));
    await eventually(async () => expect((await settled.order('order-1')).state).toBe('held'));
    expect(await printed(cron, environment)).toMatch(/^1 matter needs attention; .*order-1/s);
    const nowhere = { ...environment, SETTLED_OPERATOR_LISTEN: '127.0.0.1:9' };
    expect(await printed(cron, nowhere)).toContain('settled cannot be reached at http://127.0.0.1:9');
  });

  it('has units that systemd knows, of which the service fails if something needs attention', ({ skip }) => {
    expect(units.map(([, name]) => name)).toEqual([
      'settled-attention.service',
      'settled-attention-mail.service',
      'settled-attention.timer',
    ]);
    const named = (unit: string, name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1];
    expect(named(units[0]?.[2] ?? '', 'OnFailure')).toBe('settled-attention-mail.service');
    const service = readFileSync(join(ROOT, 'deploy/settled.service'), 'utf8');
    for (const name of ['User', 'WorkingDirectory', 'Environment=SETTLED_STORE']) {
      expect(named(units[0]?.[2] ?? '', name)).toBe(named(service, name));
    }
    expect(units[0]?.[2]).toMatch(/^ExecStart=\/opt\/settled\/bin\/settled\.mjs attention --exit-code$/m);
    skipWithout(skip, ['systemd-analyze']);
    const folder = join(testFolder(), 'units');
    mkdirSync(folder);
    for (const [, name = '', text = ''] of units) {
      writeFileSync(join(folder, name), text.replaceAll('/opt/settled/', ROOT));
    }
    const files = units.map(([, name = '']) => join(folder, name));
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', ...files], { encoding: 'utf8' });
    expect([status, stdout, stderr]).toEqual([0, '', '']);
    const [, calendar = ''] = /^OnCalendar=(.*)$/m.exec(units[2]?.[2] ?? '') ?? [];
    expect(spawnSync('systemd-analyze', ['calendar', calendar]).status).toBe(0);
  });
});
