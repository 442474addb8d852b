import { describe, expect, it } from 'vitest';
import { SCENARIOS } from '../../sandbox/scenarios.ts';
import type { TestApp } from '../support/app.ts';
import { runSandbox, spawnSandbox } from '../support/process.ts';
import { type Answering, startReceiver } from '../support/receiver.ts';
import { sharedApp } from '../support/shared.ts';

type Played = {
  code: number | null;
  passed: boolean;
  verdict: { says: string; holds: boolean; why: string | null }[];
  attempts: { kind: string; faults: string[]; responseStatus: number | null; error: string | null }[];
};

type Receiver = { webhookUrl: string; webhookSecret: string; reference: string };

/** `settled sandbox play`. */
async function playAt(scenario: string, receiver: Receiver): Promise<Played> {
  const { webhookUrl, webhookSecret, reference } = receiver;
  const end = await runSandbox([
    ...['play', scenario, '--json', '--reference', reference],
    ...['--webhook-url', webhookUrl, `--webhook-secret=${webhookSecret}`],
  ]);
  expect(end.stderr).toBe('');
  return { code: end.code, ...JSON.parse(end.stdout) };
}

const theApp = sharedApp();

/** Plays a scenario at settled, which must pass it, with an order for the money of the link. */
async function playAtSettled(scenario: string): Promise<Played & { settled: TestApp; reference: string }> {
  const settled = theApp();
  const reserved = await settled.reserve(`order ${scenario}`);
  const played = await playAt(scenario, reserved);
  expect(played.verdict.filter(({ holds }) => !holds)).toEqual([]);
  expect([played.code, played.passed]).toEqual([0, true]);
  return { ...played, settled, reference: reserved.reference };
}

async function becomesPaid({ settled, reference }: { settled: TestApp; reference: string }): Promise<void> {
  await expect.poll(async () => (await settled.order(reference)).state).toBe('paid');
}

/** A receiver of another program. */
async function startOther(answering: Answering | number): Promise<Receiver> {
  const { url } = await startReceiver(answering);
  return { webhookUrl: url, webhookSecret: 'a secret', reference: 'order-1' };
}

/** Answers what it has seen before with a conflict. */
function refusingKnown(): Answering {
  const known = new Set<unknown>();
  return ({ headers }) => {
    const id = headers['x-service-signature'];
    const status = known.has(id) ? 409 : 200;
    known.add(id);
    return status;
  };
}

const PAID = 'payment_link.payment_status_changed';

const PLAYS = {
  happy: async () => {
    const played = await playAtSettled('happy');
    await becomesPaid(played);
    expect(played.attempts.map(({ responseStatus }) => responseStatus)).toEqual([200, 200, 200, 200]);
  },
  'duplicate-storm': async () => {
    const played = await playAtSettled('duplicate-storm');
    await becomesPaid(played);
    expect(played.attempts).toHaveLength(4 * 5 + 3 * 5);
    const order = await played.settled.order(played.reference);
    expect(order).toMatchObject({ payments: [{ status: 'completed', amount: '100.00' }], holds: [] });
  },
  'out-of-order': async () => {
    const played = await playAtSettled('out-of-order');
    await becomesPaid(played);
    expect(played.attempts.map(({ kind, faults }) => [kind, ...faults])).toEqual([
      [PAID],
      ['payment_link.status_changed'],
      [PAID, 'reorder'],
      ['payment_link.created', 'reorder'],
    ]);
  },
  'lost-webhook': async () => {
    const { settled, reference, attempts } = await playAtSettled('lost-webhook');
    expect((await settled.order(reference)).state).toBe('awaiting_payment');
    expect(attempts.map(({ responseStatus }) => responseStatus)).toEqual([null, null, null, null]);
  },
  'clock-skew': async () => {
    const played = await playAtSettled('clock-skew');
    await becomesPaid(played);
    const ofPayments = played.attempts.filter(({ kind }) => kind === PAID);
    expect(ofPayments.map(({ faults, responseStatus }) => [...faults, responseStatus])).toEqual([
      ...Array(4).fill(['stale-timestamp', 400]),
      ...Array(2).fill([200]),
    ]);
  },
  'rate-limited': async () => becomesPaid(await playAtSettled('rate-limited')),
  outage: async () => {
    const played = await playAtSettled('outage');
    await becomesPaid(played);
    expect(played.attempts.filter(({ responseStatus }) => responseStatus !== null)).toHaveLength(4);
  },
} satisfies Record<string, () => Promise<void>>;

describe('sandbox: scenarios played at settled', () => {
  it('covers every scenario', () => {
    expect(Object.keys(PLAYS)).toEqual(Object.keys(SCENARIOS));
  });

  it.for(Object.entries(PLAYS))('%s comes out right', ([, play]) => play());

  it('plays the same scenario twice for two orders, and both are paid', async () => {
    const settled = theApp();
    for (const reference of ['one', 'two']) {
      expect((await playAt('happy', await settled.reserve(reference))).code).toBe(0);
      await becomesPaid({ settled, reference });
    }
  });

  it('shows a person what happened, and the verdict', async () => {
    const { webhookUrl, webhookSecret } = await theApp().reserve('shown', '149.90');
    const receiver = ['--webhook-url', webhookUrl, `--webhook-secret=${webhookSecret}`];
    const { code, stdout } = await runSandbox([
      'play',
      'happy',
      '--amount',
      '149.90',
      '--reference',
      'shown',
      ...receiver,
    ]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/SANDBOX TIME +EVENT +FAULTS +RESPONSE/);
    expect(stdout).toMatch(/payment_status_changed COMPLETED, attempt 1 +- +200/);
    expect(stdout).toMatch(/^PASSED\nThis judges the answers only. Look at the order "shown"/m);
  });

  it('has new ids in each run, and the same ones from the seed that it prints', async () => {
    const receiver = await startOther(200);
    const play = async (...more: string[]) => {
      const { webhookUrl, webhookSecret } = receiver;
      const args = ['play', 'happy', '--json', '--webhook-url', webhookUrl, ...more];
      const end = await spawnSandbox(args, { SETTLED_SANDBOX_WEBHOOK_SECRET: webhookSecret }).finished;
      const { seed, deliveries } = JSON.parse(end.stdout);
      return { seed, events: deliveries.map(({ event }: { event: string }) => event) };
    };
    const [first, second] = await Promise.all([play(), play()]);
    expect(second.events).not.toEqual(first.events);
    expect(await play('--seed', first.seed)).toEqual(first);
  });
});

describe('sandbox: scenarios played at receivers that are wrong', () => {
  it.for([
    ['believes everything', 'clock-skew', 200, 'not fresh is refused'],
    ['is broken', 'happy', 500, 'acknowledged'],
    ['refuses what it knows already', 'duplicate-storm', refusingKnown(), 'every copy'],
    ['takes a redirect for an answer', 'rate-limited', 302, 'acknowledged'],
    ['refuses retries', 'outage', 410, 'after four hours'],
  ] as const)('one that %s fails %s', async ([, scenario, answering, says]) => {
    const { code, passed, verdict } = await playAt(scenario, await startOther(answering));
    expect([code, passed]).toEqual([1, false]);
    const failed = verdict.filter(({ holds }) => !holds);
    expect(failed.map((finding) => finding.says).join()).toContain(says);
    expect(failed.every(({ why }) => typeof why === 'string')).toBe(true);
  });

  it('asks for the secret if everything is answered 401', async () => {
    const settled = theApp();
    const { webhookUrl } = await settled.reserve('play-happy');
    const receiver = ['--webhook-url', webhookUrl, '--webhook-secret', 'not the secret of it'];
    const { code, stdout } = await runSandbox(['play', 'happy', ...receiver]);
    expect([code, stdout]).toEqual([1, expect.stringContaining('answered 401: is --webhook-secret the one')]);
  });

  it('one that does not answer at all fails, with the reason', async () => {
    const receiver = { webhookUrl: 'http://127.0.0.1:1/', webhookSecret: 's', reference: 'order-1' };
    const { code, attempts } = await playAt('happy', receiver);
    expect(code).toBe(1);
    expect(attempts[0]).toMatchObject({ responseStatus: null, error: expect.stringContaining('ECONNREFUSED') });
  });
});
