import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/work/clock.ts';
import { signIn } from '../support/access.ts';
import { startTestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { readableLog } from '../support/observe.ts';
import { startTestSandbox } from '../support/sandbox.ts';
import {
  check,
  openLink,
  pass,
  passUntil,
  payLink,
  quiet,
  type Shop,
  startSettled,
  startShop,
  stopSettled,
} from '../support/shop.ts';
import { doctorOf, saying, surfacesOf } from '../support/surfaces.ts';
import { eventually } from '../support/timing.ts';

/** service-trouble.test.ts has the service; outage.test.ts the disk; failover.test.ts a standby; doctor.test.ts the address. */

/** settled watches for troubles every two seconds. */
const SEEN_MS = 5_000;
const MINUTE_MS = 60_000;

/** settled whose clock can be set, while the service's goes on. */
async function startBesideClock(log: ReturnType<typeof readableLog>['log']) {
  let aheadMs = 0;
  const sandbox = await startTestSandbox({ rateLimit: null });
  const clock = { ...sandbox.clock, nowMs: () => sandbox.clock.nowMs() + aheadMs };
  const known = { SETTLED_API_URL: sandbox.url, SETTLED_API_KEY: sandbox.apiKey };
  const shop: Shop = { sandbox, settled: await startSettled({ ...sandbox, clock }, known, { log }) };
  onTestFinished(() => stopSettled(shop));
  const setClock = (byMs: number) => {
    aheadMs = byMs;
  };
  return { shop, setClock };
}

const CALM = {
  page: expect.stringContaining('Nothing: settled can read its store, ask the service and trust its clock.'),
  summary: 'Nothing needs attention.',
  doctor: '',
  readyz: '200 {"ready":true}',
  why: expect.not.stringContaining('clock is'),
};

describe('what every surface says', () => {
  it.each([
    [10 * MINUTE_MS, 'behind', '-60\\d'],
    // The service says its time in whole seconds, cut off, and its answer takes a moment.
    [-MINUTE_MS - 900, 'ahead of', '(59|60)'],
  ])('of a clock that is %d ms off', async (byMs, way, metric) => {
    const { log, lines } = readableLog();
    const { shop, setClock } = await startBesideClock(log);
    await openLink(shop, 'order-0');
    await pass(shop, SEEN_MS);
    const { apiUrl } = shop.settled;
    expect(await surfacesOf(shop.settled, 'order-0', ['clock', 'clock steps'])).toMatchObject(CALM);

    setClock(byMs);
    const words = new RegExp(`The service's clock is [\\dmins. ]+ ${way} ours, so deliveries may look stale`);
    // A link that is opened now: the service's own webhook about it looks stale.
    await openLink(shop, 'order-1');
    await pass(shop, SEEN_MS);
    const after = await surfacesOf(shop.settled, 'order-1', ['clock']);
    expect(after).toEqual(saying(words, `settled_clock_ahead_seconds ${metric}(\\.\\d+)?`));
    expect(after.page).toMatch(new RegExp(`warning clock: ${words.source}`));
    expect(after.summary).toMatch(/^Nothing needs attention\. The service's clock/);
    expect(await doctorOf(apiUrl, ['clock'])).toMatch(words);
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', kind: 'clocks_differ' }));

    setClock(0);
    await check(shop, 'order-1');
    await pass(shop, SEEN_MS);
    expect(await surfacesOf(shop.settled, 'order-1', ['clock'])).toMatchObject(CALM);
    expect(lines).toContainEqual(expect.objectContaining({ level: 'info', kind: 'clocks_differ' }));
  });

  it('is of one age: no page says what was loaded before /readyz said more', async () => {
    let aheadMs = 0;
    const startedMs = Date.now();
    // While it stands still, what pages load is never too old to be shared.
    const clock = { ...systemClock, nowMs: () => startedMs + aheadMs, monotonicMs: () => 0 };
    const settled = await startTestApp({ clock });
    await settled.reserve('order-1');
    const session = await signIn(settled);
    const said = () => surfacesOf(settled, 'order-1', ['clock steps'], session);
    expect((await said()).page).toContain('Nothing needs attention.');

    aheadMs = MINUTE_MS;
    await eventually(async () => expect(await (await fetch(`${settled.apiUrl}/readyz`)).text()).toMatch(/troubles/));
    const { page, summary, why } = await said();
    for (const words of [page, summary, why]) expect(words).toContain('The clock stepped within the last hour');
    expect(page).toMatch(/warning clock steps: /);
  });

  it('of a shop that refuses news of money and takes the rest', async () => {
    const { log, lines } = readableLog();
    const callback = await startCallback();
    callback.answerWith(({ body }) => (JSON.parse(body).type === 'order.paid' ? 400 : 204));
    const shop = await startShop({ environment: callback.environment, log });
    const link = await openLink(shop, 'order-1');
    await payLink(shop, link);
    const said = () => surfacesOf(shop.settled, 'order-1', ['shop', 'needs a person']);
    let others = 0;
    const isSaid = async () => {
      await payLink(shop, await openLink(shop, `other-${++others}`));
      await quiet(shop);
      return (await said()).stats === 'money_untold';
    };
    await passUntil(shop, isSaid, { withinMs: 300_000, stepMs: 30_000 });
    await pass(shop, SEEN_MS);
    const words = /[Tt]he shop has not taken news about (the )?money/;
    const told = await said();
    expect(told).toEqual(
      saying(words, 'settled_needs_person{concern="shop",kind="money_untold"} 1', {
        page: expect.stringMatching(/money untold the shop has not taken news about the money of an order for minutes/),
        summary: expect.stringMatching(/^1 matter needs attention.*The shop may not know of money\.$/),
        attention: expect.stringMatching(words),
        doctor: expect.stringMatching(
          /^warning needs a person: 1 matter.*\nwarning shop: the shop (has not taken|does not accept)/,
        ),
        why: expect.stringMatching(/The shop has not been told yet that the order is paid\. Telling it has failed/),
        stats: 'money_untold',
      }),
    );
    expect(await doctorOf(shop.settled.apiUrl, ['shop'])).toMatch(
      /^warning shop: the shop (has not taken|does not accept)/,
    );
    expect(lines).toContainEqual(expect.objectContaining({ level: 'warn', kind: 'money_untold' }));
  });
});
