import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openClock } from '../../sandbox/clock.ts';
import { testFolder } from '../support/app.ts';
import { startTestSandbox } from '../support/sandbox.ts';

const START_MS = Date.UTC(2030, 0, 1);
const HOUR_MS = 3_600_000;

function startClock(scale = 1) {
  const clock = openClock({ startMs: START_MS, scale });
  onTestFinished(clock.stop);
  return clock;
}

describe('clock: turning it', () => {
  it('runs what falls due meanwhile in order, at its time, one after the other', async () => {
    const clock = startClock();
    const ran: [string, number][] = [];
    const hour = () => Math.floor((clock.nowMs() - START_MS) / HOUR_MS);
    clock.after(2 * HOUR_MS, async () => {
      ran.push(['second begins', hour()]);
      await new Promise(setImmediate);
      ran.push(['second ends', hour()]);
      clock.after(HOUR_MS, () => void ran.push(['planned on the way', hour()]));
    });
    clock.after(HOUR_MS, () => void ran.push(['first', hour()]));
    clock.after(2 * HOUR_MS + 1, () => void ran.push(['third', hour()]));
    clock.after(9 * HOUR_MS, () => void ran.push(['not yet', hour()]));
    await clock.advance(4 * HOUR_MS);
    expect(ran).toEqual([
      ['first', 1],
      ['second begins', 2],
      ['second ends', 2],
      ['third', 2],
      ['planned on the way', 3],
    ]);
    expect(hour()).toBe(4);
  });

  it('runs repeated work once in each turn', async () => {
    const clock = startClock();
    let runs = 0;
    clock.every(60_000, () => void runs++);
    await clock.advance(HOUR_MS);
    expect(runs).toBe(1);
    await clock.advance(HOUR_MS);
    expect(runs).toBe(2);
  });

  it('does not run what was cancelled', async () => {
    const clock = startClock();
    let runs = 0;
    const cancels = [clock.after(1_000, () => void runs++), clock.every(1_000, () => void runs++)];
    for (const cancel of cancels) cancel();
    await clock.advance(HOUR_MS);
    expect(runs).toBe(0);
  });

  it('makes one turn after the other', async () => {
    const clock = startClock();
    await Promise.all([clock.advance(HOUR_MS), clock.advance(HOUR_MS)]);
    expect(Math.floor((clock.nowMs() - START_MS) / HOUR_MS)).toBe(2);
  });

  it('does not change the monotonic time', async () => {
    const clock = startClock();
    const beforeMs = clock.monotonicMs();
    await clock.advance(HOUR_MS);
    expect(clock.monotonicMs() - beforeMs).toBeLessThan(HOUR_MS);
  });
});

describe('clock: its scale', () => {
  it('passes a day in less than a real second, and runs what is due in it', async () => {
    const clock = startClock(100_000);
    await new Promise<void>((resolve) => void clock.after(24 * HOUR_MS, resolve));
    expect(clock.nowMs() - START_MS).toBeGreaterThanOrEqual(24 * HOUR_MS);
  });

  it('runs in order what falls due while the process is busy', async () => {
    const clock = startClock();
    const ran: string[] = [];
    const both = new Promise<void>((resolve) => {
      const run = (name: string) => () => void (ran.push(name) === 2 && resolve());
      clock.after(20, run('later'));
      clock.after(10, run('earlier'));
    });
    const untilMs = performance.now() + 50;
    while (performance.now() < untilMs);
    await both;
    expect(ran).toEqual(['earlier', 'later']);
  });

  it('is that of the sandbox', async () => {
    const sandbox = await startTestSandbox({ timeScale: 86_400 });
    const read = async () => (await sandbox.control('/clock')).body.epochMs as number;
    const beforeMs = await read();
    await expect.poll(async () => (await read()) - beforeMs).toBeGreaterThan(60_000);
  });
});

describe('clock: over HTTP', () => {
  it.for([
    [{ advance: '17h' }, 17 * HOUR_MS],
    [{ advance: '90m' }, 1.5 * HOUR_MS],
    [{ advance: '2h30m' }, 2.5 * HOUR_MS],
    [{ advance: '1d1s' }, 24 * HOUR_MS + 1_000],
    [{ advance: '500ms' }, 500],
    [{ advanceMs: 1_500 }, 1_500],
  ] as const)('turns by %j', async ([body, byMs]) => {
    const sandbox = await startTestSandbox();
    const beforeMs = sandbox.clock.nowMs();
    const answer = await sandbox.control('/clock', { body });
    expect(answer.status).toBe(200);
    expect(Date.parse(answer.body.time)).toBe(answer.body.epochMs);
    const turnedMs = answer.body.epochMs - beforeMs;
    expect(turnedMs).toBeGreaterThanOrEqual(byMs);
    expect(turnedMs).toBeLessThan(byMs + 10_000);
  });

  it('turns to a time in the future', async () => {
    const sandbox = await startTestSandbox();
    const to = new Date(sandbox.clock.nowMs() + 40 * HOUR_MS).toISOString();
    const { body } = await sandbox.control('/clock', { body: { to } });
    expect(body.epochMs).toBeGreaterThanOrEqual(Date.parse(to));
  });

  it.for([
    ['nothing', {}, 'advance'],
    ['no duration', { advance: 'soon' }, 'advance'],
    ['an empty duration', { advance: '' }, 'advance'],
    ['a bare number', { advance: '17' }, 'advance'],
    ['a fraction', { advanceMs: 0.5 }, 'advanceMs'],
    ['text for milliseconds', { advanceMs: '5' }, 'advanceMs'],
    ['a turn back', { advanceMs: -1 }, 'advanceMs'],
    ['more than a year', { advance: '400d' }, 'advance'],
    ['the past', { to: '2001-01-01T00:00:00Z' }, 'to'],
    ['no time', { to: 'tomorrow' }, 'to'],
    ['another name', { forward: '1h' }, 'forward'],
    ['two at once', { advance: '1h', advanceMs: 1 }, 'advance'],
  ] as const)('refuses %s, and changes nothing', async ([, body, field]) => {
    const sandbox = await startTestSandbox();
    const beforeMs = sandbox.clock.nowMs();
    const answer = await sandbox.control('/clock', { body });
    expect([answer.status, answer.body.error.field]).toEqual([400, field]);
    expect(sandbox.clock.nowMs() - beforeMs).toBeLessThan(60_000);
  });

  it('lets links expire meanwhile', async () => {
    const sandbox = await startTestSandbox();
    const expiresAt = new Date(sandbox.clock.nowMs() + HOUR_MS).toISOString();
    const body = { title: 'Order 1', amount: 100, externalReference: 'order-1', expiresAt };
    await sandbox.call('/payment-links', { body });
    expect((await sandbox.control('/links/order-1')).body.status).toBe('ACTIVE');
    await sandbox.control('/clock', { body: { advance: '61m' } });
    expect((await sandbox.control('/links/order-1')).body.status).toBe('EXPIRED');
  });
});

describe('clock: over a restart', () => {
  it('stays turned if everything is kept in a file', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const first = await startTestSandbox({ data });
    await first.control('/clock', { body: { advance: '100h' } });
    await first.stop();
    const second = await startTestSandbox({ data });
    expect(second.clock.nowMs() - Date.now()).toBeGreaterThan(99 * HOUR_MS);
  });

  it('does not go back before what has happened if real time is set back', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const aheadMs = Date.now() + 10 * HOUR_MS;
    const trueTime = vi.spyOn(Date, 'now').mockReturnValue(aheadMs);
    onTestFinished(() => void trueTime.mockRestore());
    const first = await startTestSandbox({ data });
    await first.call('/payment-links', { body: { title: 'Order 1', amount: 100 } });
    await first.stop();
    trueTime.mockRestore();
    const second = await startTestSandbox({ data });
    expect(second.clock.nowMs()).toBeGreaterThanOrEqual(aheadMs);
  });

  it('does not go back after it ran faster than real time', async () => {
    const data = join(testFolder(), 'sandbox.db');
    const first = await startTestSandbox({ data, timeScale: 86_400 });
    await expect.poll(() => first.clock.nowMs() - Date.now()).toBeGreaterThan(HOUR_MS);
    const stoodMs = first.clock.nowMs();
    await first.stop();
    const second = await startTestSandbox({ data });
    expect(second.clock.nowMs()).toBeGreaterThanOrEqual(stoodMs);
  });
});

describe('seed', () => {
  it('gives the same ids and secrets again, and another one gives others', async () => {
    const made = async (seed: string) => {
      const sandbox = await startTestSandbox({ seed });
      const links = [];
      for (const externalReference of ['one', 'two']) {
        const body = { title: 'Order', amount: 100, externalReference };
        const { id, shortUrl, webhookSecret } = (await sandbox.call('/payment-links', { body })).body.paymentLink;
        links.push({ id, short: shortUrl.split('/').at(-1), webhookSecret });
      }
      const paid = await sandbox.control('/links/one/pay', { method: 'POST' });
      const { events } = (await sandbox.control('/events')).body;
      return {
        apiKey: sandbox.apiKey,
        links,
        payment: paid.body.payments[0].id,
        events: events.map(({ id }: { id: string }) => id),
      };
    };
    const [one, same, other] = await Promise.all([made('a'), made('a'), made('b')]);
    expect(same).toEqual(one);
    const texts = (given: object) => JSON.stringify(given).match(/"[^"]{8,}"/g) ?? [];
    const known = new Set(texts(one));
    const shared = texts(other).filter((text) => known.has(text));
    expect(shared).toEqual(['"webhookSecret"', '"webhookSecret"']);
    expect(new Set(known).size).toBe(texts(one).length - 1);
  });
});
