import { beforeAll, describe, expect, it } from 'vitest';
import { paymentEvent } from '../support/deliveries.ts';
import { startEndlessRun, tamper } from '../support/rows.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, failing, misunderstood, say } from './settled.ts';

const settled = sharedApp();
const environment = () => environmentOf(settled());

/** A run of the test of cancelling. */
const ENDLESS = '70';

beforeAll(async () => {
  const link = await settled().reserve('good');
  await settled().deliver(link, paymentEvent({ linkId: 'pl_good', amount: '100.00' }));
  await eventually(async () => expect((await settled().api('/v1/stats')).body.stats.events.done).toBe(1));
  tamper(settled().storePath, `UPDATE inbox SET status = 'dead', fault_code = 'bug', fault_message = ''`);
});

describe('cli: bulk', () => {
  it('counts, starts and shows work on all that its options select', async () => {
    const { text, data } = await say(['bulk', 'replay', '--status', 'dead', '--dry-run'], environment());
    expect(text).toBe('There is 1 event. Nothing was done.\n');
    expect(data).toEqual({ count: { n: 1, isMore: false } });
    const started = await say(['bulk', 'replay', '--status', 'dead', '--reason', 'seen'], environment());
    expect(started.text).toMatch(
      /^id +\d+\naction +replay_events\nfilter +status=dead\nreason +seen\nstarted by +operator\n/,
    );
    const { id } = started.data.run;
    await eventually(async () => {
      const shown = await say(['bulk', 'show', id], environment());
      expect(shown.data.run).toMatchObject({ action: 'replay_events', status: 'done' });
      expect(shown.text).toMatch(/\nstatus +done\n/);
      expect(shown.text).toMatch(/\ndone +1 of 1: \d queued again, \d skipped, 0 failed\n/);
    });
    const listed = await say(['bulk', 'list'], environment());
    expect(listed.text).toMatch(/^ID +STARTED +ACTION +FILTER +BY +STATUS +DONE +ENDS ABOUT\n/);
    const mine = listed.data.runs.filter(({ id }: { id: string }) => id !== ENDLESS);
    expect(mine).toHaveLength(1);
  });

  it('cancels it', async () => {
    startEndlessRun(settled().storePath, Number(ENDLESS));
    const end = await settled().api(`/v1/bulk/${ENDLESS}`);
    expect(end.body.run.status).toBe('running');
    const cancelled = await failing(['bulk', 'cancel', '999'], environment());
    expect(cancelled).toMatchObject({ code: 'not_found', exit: 66 });
    const [one, other] = await Promise.allSettled(
      [1, 2].map(() => failing(['bulk', 'cancel', ENDLESS], environment())),
    );
    // One of the two cancels it, and the other comes too late.
    expect([one?.status, other?.status].sort()).toEqual(['fulfilled', 'rejected']);
    expect((await settled().api(`/v1/bulk/${ENDLESS}`)).body.run.status).toBe('cancelled');
  });

  it('needs something that selects, and a dry run no reason', async () => {
    const accept = await say(['bulk', 'accept', '--hold', 'unconfirmed', '--dry-run'], environment());
    expect(accept.text).toMatch(/^There are 0 orders/);
    expect(await misunderstood(['bulk', 'replay', '--dry-run'])).toMatch(/needs at least one of: --status, --order/);
  });
});
