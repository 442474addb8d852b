import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { parseEnv } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MAIN } from '../../prove/harness/settled.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import { eventuallyAfter } from '../support/timing.ts';

const eventually = eventuallyAfter('processes start, end and take over');

const NO_TERMINAL = 'script (util-linux) is not installed: no terminal can be made';
const API_KEY = 'key-of-the-person-at-the-terminal';

type Session = {
  /** Waits for a text after what was seen so far, then types. */
  answer(after: string, keys: string): Promise<void>;
  text(): string;
  ended: Promise<number | null>;
};

/** `settled init` on a terminal of its own, which shows what a person would see. */
function onTerminal(cwd: string, environment: Record<string, string>): Session {
  const command = `'${process.execPath}' '${MAIN}' init`;
  const child: ChildProcess = spawn('script', ['-qec', command, '/dev/null'], {
    cwd,
    env: { PATH: process.env.PATH ?? '', TERM: 'dumb', NO_COLOR: '1', ...environment },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  // It may have ended before it has read everything.
  child.stdin?.on('error', () => {});
  let shown = '';
  let seen = 0;
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  return {
    answer: async (after, keys) => {
      seen = await eventually(() => {
        const at = shown.indexOf(after, seen);
        if (at < 0) throw new Error(`"${after}" does not follow in:\n${shown.slice(seen)}`);
        return at + after.length;
      });
      child.stdin?.write(keys);
    },
    text: () => shown,
    ended,
  };
}

async function prepare() {
  const [hooks, operator] = [await freePort(), await freePort()];
  const environment = { SETTLED_HOOKS_LISTEN: `127.0.0.1:${hooks}`, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operator}` };
  return { folder: testFolder(), environment, publicUrl: `http://127.0.0.1:${hooks}` };
}

const canAsk = spawnSync('script', ['--version']).error === undefined;

describe('cli: init on a terminal', () => {
  it('asks again what cannot be used, hides the key, and ends with what doctor finds', async ({ skip }) => {
    skip(!canAsk, NO_TERMINAL);
    const { folder, environment, publicUrl } = await prepare();
    const sandbox = await startTestSandbox({ apiKey: API_KEY });
    const session = onTerminal(folder, environment);
    await session.answer('1 of 5', '');
    await session.answer('> ', 'links\r');
    await session.answer('No: it is not an address', '');
    // Two answers are pasted at once; the key is not shown even so.
    await session.answer('> ', `${sandbox.url}\r${API_KEY}\r`);
    await session.answer('2 of 5', '');
    await session.answer('3 of 5', '');
    await session.answer('> ', `${publicUrl}\r`);
    await session.answer('4 of 5', '');
    await session.answer('[sqlite:./data/settled.db] > ', 'postgres\r');
    await session.answer('not shown while you type > ', 'mysql://user:hidden-word@host\r');
    await session.answer('No: it names no store', '');
    // A second try is as hidden as the first.
    await session.answer('not shown while you type > ', '\r');
    await session.answer('[sqlite:./data/settled.db] > ', '\r');
    await session.answer('5 of 5', '');
    await session.answer('> ', 'http://127.0.0.1:9/settled\r');
    await session.answer('on this machine or in this network? [y/N] > ', '\r');
    await session.answer('No: it is no public https address', '');
    await session.answer('> ', '\r');
    await session.answer('Written. settled is started for a moment', '');
    expect(await session.ended).toBe(0);
    const text = session.text();
    expect(text).toMatch(/Written in .*data\/api-key,\s+data\/shop-token,\s+\.env\..*ok +public address/s);
    expect(text).not.toMatch(/^failing/m);
    expect(text).toContain('Give the shop its token, which is in data/shop-token.');
    // What explains a question, and what is next: all of it fits a terminal that does not say how wide it is.
    const explained = text.split('\r\n').filter((line) => /^\d of 5|^ {8}\w|^ {2}\d\. /.test(line));
    expect(explained.length).toBeGreaterThan(10);
    expect(explained.filter((line) => line.length > 80)).toEqual([]);
    for (const secret of [API_KEY, 'hidden-word']) expect(text).not.toContain(secret);
    expect(text).not.toContain(readFileSync(`${folder}/data/shop-token`, 'utf8').trim());
    expect(readFileSync(`${folder}/data/api-key`, 'utf8')).toBe(`${API_KEY}\n`);
    expect(parseEnv(readFileSync(`${folder}/.env`, 'utf8'))).toMatchObject({ SETTLED_PUBLIC_URL: publicUrl });
  });

  it('leaves nothing if Ctrl+C or the end of the input comes before the last answer', async ({ skip }) => {
    skip(!canAsk, NO_TERMINAL);
    const { folder, environment } = await prepare();
    const [interrupted, left] = [onTerminal(folder, environment), onTerminal(folder, environment)];
    await Promise.all([
      interrupted.answer('> ', '\u0003'),
      left.answer('> ', '\u0004').then(() => left.answer('Nothing was written.', '')),
    ]);
    expect(await interrupted.ended).toBe(128 + constants.signals.SIGINT);
    expect(await left.ended).toBe(1);
    expect(readdirSync(folder)).toEqual([]);
  });
});
