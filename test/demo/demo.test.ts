import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { runDemo } from '../../demo/command.ts';
import { HOST, type PortName, USUAL_PORTS } from '../../demo/ports.ts';
import { testFolder } from '../support/app.ts';
import { paste, printedBy } from '../support/process.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { type Demo, sharedDemo, spawnDemo } from './running.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const STEPS = [
  ['open an order in the shop', 'awaiting_payment'],
  ['pay it', 'paid'],
  ['deliver the payment twice more', 'paid'],
  ['tamper: PENDING becomes COMPLETED', expect.stringMatching(/^(awaiting_payment|payment_pending)$/)],
  ['complete it, untampered', 'paid'],
  ['lose every webhook of a payment', 'awaiting_payment'],
  ['ask: POST /v1/orders/…/check', 'paid'],
];

describe('demo --once', () => {
  const others = {
    SETTLED_STORE: 'sqlite:/nowhere/settled.db',
    SETTLED_API_URL: 'https://pay.example.com',
    SETTLED_NO_SUCH_SETTING: 'x',
  };
  const scratch = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const folder = join(scratch, 'kept', 'here');
  // One run shows what it prints and what it keeps.
  const kept = sharedDemo(['--once', '--json', '--keep', folder], { environment: others });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  it('prints one line of JSON, ignores the settings of another settled, and leaves nothing', async () => {
    const { code, stdout, stderr } = await kept().finished;
    expect([code, stderr, stdout.trimEnd().split('\n').length]).toEqual([0, '', 1]);
    const { steps } = JSON.parse(stdout);
    expect(steps.map(({ step, state }: { step: string; state: string }) => [step, state])).toEqual(STEPS);
    expect(steps.at(-1).happened).toContain('reconciliation');
    await expectNothingLeft(kept());
  });

  it('keeps its files in a named folder that only its user can read', async () => {
    const { code } = await kept().finished;
    expect(code).toBe(0);
    expect(readdirSync(folder)).toEqual(
      expect.arrayContaining(['sandbox.db', 'sandbox.log', 'settled.db', 'settled.log']),
    );
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(folder)) expect(statSync(join(folder, file)).mode & 0o077, file).toBe(0);
    const again = await spawnDemo(['--keep', folder]).finished;
    expect([again.code, again.stdout]).toEqual([73, '']);
    expect(again.stderr).toMatch(/^.*kept\/here is not empty\. Name a new folder: --keep FOLDER\n$/);
  });

  it('ends with 130 and leaves nothing if it is interrupted', async () => {
    const demo = spawnDemo(['--once']);
    await eventually(() => expect(demo.files()).toHaveLength(1));
    demo.child.kill('SIGINT');
    expect(await demo.finished).toMatchObject({ code: 130, stdout: '', stderr: '' });
    expect(demo.files()).toEqual([]);
    // What was killed is gone a moment later.
    await demo.nothingLeft();
  });

  it('leaves nothing if it is killed', async () => {
    const demo = spawnDemo(['--once']);
    await eventually(() => expect(pidOf(demo, ' serve ')).toBeGreaterThan(0));
    demo.child.kill('SIGKILL');
    expect((await demo.finished).signal).toBe('SIGKILL');
    await demo.nothingLeft();
  });
});

describe('demo', () => {
  // Each serves several tests, the last of which ends it. The first is started as a terminal does, in a group of its
  // own.
  const one = sharedDemo([], { through: ['setsid'] });
  const other = sharedDemo([]);

  it('prints pages that a person can open, commands that work, and nothing secret', async () => {
    const demo = one();
    await demo.line(/Stop with Ctrl\+C/);
    const text = demo.stdout();
    const numbered = [...text.matchAll(/^ {2}(\d) {2}(.*?) +(\S+)$/gm)].map(([, at, what, where]) => [at, what, where]);
    const address = expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+/);
    expect(numbered).toEqual([
      ['1', 'the shop', address],
      ['2', 'the console', address],
    ]);
    for (const [, , where = ''] of numbered) {
      const page = await fetch(where, { headers: { accept: 'text/html' } });
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    }
    const shop = numbered[0]?.[2] ?? '';
    const [, folder = ''] = /The database and the logs are in (\S+)/.exec(text) ?? [];
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(text).not.toContain(readFileSync(`${folder}/settled.db.operator-token`, 'utf8').trim());

    await fetch(`${shop}orders`, {
      method: 'POST',
      body: new URLSearchParams({ good: 'tea', reference: 'tea-1' }),
      redirect: 'manual',
    });
    // The demo reports the shop's order in the output that printed the addresses.
    await demo.line(/^[\d:.]+ INFO: order opened {2}order=tea-1 amount="48\.00 BRL"$/);
    await demo.line(/ INFO: link is open {2}order=tea-1 link=/);
    expect(pasted(text, /SETTLED_STORE=.*\n.*why ORDER/)).toMatch(/^Order tea-1 \(48\.00 BRL\) is not paid\./);
    expect(pasted(text, /settled sandbox faults '.*/)).toMatch(/drop .*every one/);
    expect(pasted(text, /settled sandbox faults --clear.*/)).toContain('There are no fault plans.');
  });

  it('takes free ports if another demo has the usual ones, and says so', async () => {
    await one().line(/Stop with Ctrl/);
    const first = addressesIn(one().stdout());
    expect(first.sandbox).toMatch(/^http/);
    await other().line(/Stop with Ctrl/);
    const text = other().stdout();
    const { shop, sandbox, operator } = addressesIn(text);
    for (const [name, address] of Object.entries({ shop, sandbox, operator })) {
      expect(address).not.toBe(first[name as keyof typeof first]);
      const usual = USUAL_PORTS[name as PortName];
      if (address !== `http://${HOST}:${usual}`) expect(text).toContain(`Port ${usual} is taken: ${address} instead.`);
    }
    for (const page of [`${shop}/`, `${operator}/readyz`, `${sandbox}/_control`]) {
      expect((await fetch(page)).status).toBe(200);
    }
  });

  it('ends with 0 by Ctrl+C, however often it is pressed, kills what does not end, and leaves nothing', async () => {
    const demo = one();
    await demo.line(/Stop with Ctrl\+C/);
    expect(demo.processes().length).toBeGreaterThan(2);
    process.kill(pidOf(demo, ' serve '), 'SIGSTOP');
    // A terminal tells the whole process group.
    const group = -(demo.child.pid as number);
    process.kill(group, 'SIGINT');
    process.kill(group, 'SIGINT');
    expect(await demo.finished).toMatchObject({ code: 0, signal: null, stderr: '' });
    await expectNothingLeft(demo);
  });

  it('ends with 1 and says so if one of its programs ends early', async () => {
    const demo = other();
    await demo.line(/Stop with Ctrl/);
    process.kill(pidOf(demo, ' serve '), 'SIGKILL');
    const { code, stderr } = await demo.finished;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^settled: settled ended early \(SIGKILL\)\. Its last lines:\n/);
    await demo.nothingLeft();
  });
});

describe('the command settled demo', () => {
  it('lists its options and exit codes', async () => {
    for (const words of ['demo --help', 'help demo']) {
      const { status, stdout } = launch(join(ROOT, 'bin'), ...words.split(' '));
      expect(status).toBe(0);
      for (const told of ['--once', '--keep FOLDER', '--json', 'Exit codes:', '  130  '])
        expect(stdout).toContain(told);
    }
    expect(JSON.parse(launch(join(ROOT, 'bin'), 'demo', '--help', '--json').stdout)).toHaveProperty('options.keep');
  });

  it.each([
    [['--twice'], 'settled: `settled demo` has no option --twice. It has: --once, --keep, --json, --help.'],
    [['now'], 'settled: `settled demo` takes no argument, so "now" is too much. See: settled demo --help'],
    [['--keep='], 'settled: --keep needs a folder: --keep FOLDER'],
  ])('refuses %j with 64 and what it knows', async (words, told) => {
    const refused = await printedBy((surroundings) => runDemo(words, surroundings, () => expect.fail('it played')));
    expect(refused).toMatchObject({ code: 64, stdout: '', stderr: `${told}\n` });
  });

  it('refuses a file in the place of a folder', async () => {
    const file = join(testFolder(), 'file');
    writeFileSync(file, '');
    for (const demo of [spawnDemo(['--keep', file, '--json']), spawnDemo(['--json'], { TMPDIR: file })]) {
      const { code, stderr } = await demo.finished;
      expect([code, JSON.parse(stderr).error.code]).toEqual([73, 'folder_unusable']);
    }
  });

  it('says in one sentence that the installation has no demo, as in the image', () => {
    const folder = join(testFolder(), 'bin');
    cpSync(join(ROOT, 'bin'), folder, { recursive: true });
    const { status, stdout, stderr } = launch(folder, 'demo', '--once');
    expect([status, stdout]).toEqual([69, '']);
    expect(stderr).toBe('This installation of settled has no demo: run it from a checkout of settled.\n');
    const image = ['Dockerfile', '.dockerignore'].map((file) => readFileSync(join(ROOT, file), 'utf8')).join();
    expect(image).not.toContain('demo');
  });
});

/** The addresses under which a demo that serves says that everything is. */
function addressesIn(text: string): { shop: string; operator: string; sandbox: string } {
  const [shop = '', operator = ''] = text.match(/(?<= {2})http:\S+?:\d+/g) ?? [];
  const [sandbox = ''] = text.match(/(?<=--url )\S+/) ?? [];
  return { shop, operator, sandbox };
}

async function expectNothingLeft(demo: Demo): Promise<void> {
  expect(demo.left()).toEqual({ files: [], processes: [] });
  await demo.nothingLeft();
}

/** The process of the demo whose command line holds this. */
function pidOf(demo: Demo, words: string): number {
  return Number(
    demo
      .processes()
      .find((process) => process.includes(words))
      ?.split(' ')[0],
  );
}

function launch(bin: string, ...words: string[]) {
  return spawnSync(process.execPath, [join(bin, 'settled.mjs'), ...words], { encoding: 'utf8' });
}

/** Runs a command that the demo shows, for the order tea-1. */
function pasted(text: string, command: RegExp): string {
  const [shown = ''] = command.exec(text) ?? [];
  const launcher = `'${process.execPath}' '${join(ROOT, 'bin/settled.mjs')}' `;
  return paste(shown.replace(/settled (?=sandbox|why)/, launcher).replace('ORDER', 'tea-1'));
}
