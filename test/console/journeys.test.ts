import { readFileSync } from 'node:fs';
import type { Locator } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { namedToken, signIn } from '../support/access.ts';
import { OPERATOR_TOKEN, startTestApp, type TestApp } from '../support/app.ts';
import { overflowOf, type Tab, useBrowser, violationsIn } from '../support/browser.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { startEndlessRun } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';

/**
 * What a person does at the console, from signing in to signing out, in a real browser: in each size, light and dark, with
 * and without script, by mouse and by keyboard alone: the long mode alone goes there.
 */

const open = useBrowser();

type Way = { width: number; scheme: 'light' | 'dark'; hasScript: boolean; byKeyboard: boolean };

const EACH = ([360, 768, 1_280] as const).flatMap((width) =>
  (['light', 'dark'] as const).flatMap((scheme) =>
    [true, false].flatMap((hasScript) =>
      [false, true].map((byKeyboard): Way => ({ width, scheme, hasScript, byKeyboard })),
    ),
  ),
);
const DEAD = 200;
const TABS_MAX = 400;

const GIVEN = {
  accepted: 'lamp-1',
  rejected: 'vase-1',
  pending: 'tea-1',
  broken: 'broken-1',
  amount: '60.07',
  guest: 'guest',
} as const;

/** What the person finds. Returns the ids by which the first order is found. */
async function seed(app: TestApp): Promise<string[]> {
  const { accepted, rejected, pending, amount, guest } = GIVEN;
  const deliver = async (reference: string, event: object) => {
    const link = await app.reserve(reference);
    await app.deliver(link, JSON.stringify(event));
  };
  const event = (name: string, more: object) => {
    const made = JSON.parse(
      paymentEvent({ id: `evt-${name}-1`, linkId: `pl-${name}-1`, paymentId: `pay-${name}-1`, ...more }),
    );
    made.data.latestPayment.customer = { name: `${name} souza`, email: `${name}@example.com` };
    return made;
  };
  await deliver(accepted, event('ana', { amount }));
  await deliver(rejected, event('ben', { amount: '61.00' }));
  await deliver(pending, event('eva', { amount: '100.00', status: 'PENDING' }));
  const broken = await app.reserve(GIVEN.broken);
  await Promise.all(Array.from({ length: DEAD }, (_, at) => app.deliver(broken, `not JSON ${at}`)));
  const notice = await eventually(async () => {
    const { notices } = (await app.api(`/v1/notices?reference=${accepted}`)).body;
    expect((await app.order(rejected)).state).toBe('held');
    expect((await app.order(pending)).state).toBe('payment_pending');
    expect((await app.api(`/v1/events?reference=${GIVEN.broken}&status=dead&count=true`)).body.count.n).toBe(DEAD);
    return notices[0];
  });
  await signIn(app, await namedToken(app, 'viewer', guest));
  return [accepted, 'pl-ana-1', 'pay-ana-1', 'evt-ana-1', notice.id, 'ana souza', 'ana@example.com'];
}

/** A person at a tab: clicks and types, or reaches everything by Tab. */
function person(tab: Tab, { byKeyboard }: Way) {
  async function reach(target: Locator): Promise<void> {
    await target.waitFor();
    for (let presses = 0; presses < TABS_MAX; presses++) {
      if (await target.evaluate((element) => element === element.ownerDocument.activeElement)) return;
      await tab.keyboard.press('Tab');
    }
    throw new Error(`${target} is not reached by Tab`);
  }
  return {
    press: async (target: Locator) => {
      if (!byKeyboard) return target.click();
      await reach(target);
      await tab.keyboard.press('Enter');
    },
    type: async (target: Locator, text: string) => {
      if (!byKeyboard) return target.fill(text);
      await reach(target);
      await tab.keyboard.press('Control+A');
      await tab.keyboard.type(text);
    },
  };
}

describe('console: from the sign-in to the export', () => {
  it.each(EACH)('at $width px, $scheme, with script: $hasScript, by keyboard: $byKeyboard', async (way) => {
    const callback = await startCallback();
    callback.answerWith(410);
    const app = await startTestApp({ environment: callback.environment, engine: 'sqlite' });
    const ids = await seed(app);
    const tab = await open({ width: way.width, height: 800 });
    const browser = await tab.context().newCDPSession(tab);
    // Not for the whole context: axe needs script.
    const withScript = (value: boolean) => browser.send('Emulation.setScriptExecutionDisabled', { value: !value });
    await withScript(way.hasScript);
    await tab.emulateMedia({ colorScheme: way.scheme });
    const { press, type } = person(tab, way);
    const main = tab.locator('main');
    const at = (path: string) => tab.goto(app.apiUrl + path);
    const looksRight = async () => {
      expect(await overflowOf(tab), tab.url()).toBe(0);
      await withScript(true);
      expect(await violationsIn(tab), tab.url()).toEqual([]);
      await withScript(way.hasScript);
      expect(tab.wrongs, tab.url()).toEqual([]);
    };

    await at('/orders');
    await looksRight();
    await type(tab.locator('#token'), OPERATOR_TOKEN);
    await press(tab.getByRole('button', { name: 'Sign in' }));
    await tab.waitForURL('**/orders');
    await looksRight();

    for (const id of ids) {
      await type(tab.locator('#find'), id);
      await tab.keyboard.press('Enter');
      await tab.waitForURL(`**/orders/${GIVEN.accepted}`);
      await at('/orders');
    }
    await type(tab.locator('#find'), `R$ ${GIVEN.amount.replace('.', ',')}`);
    await tab.keyboard.press('Enter');
    await tab.waitForURL(/\?q=/);
    await looksRight();
    await press(main.getByRole('link', { name: GIVEN.accepted, exact: true }));
    await tab.waitForURL(`**/orders/${GIVEN.accepted}`);

    await at(`/orders/${GIVEN.pending}`);
    expect(await tab.locator('.answer').innerText()).toContain('the customer has begun to pay');
    await looksRight();

    for (const [reference, decision, state] of [
      [GIVEN.accepted, 'accept', 'paid'],
      [GIVEN.rejected, 'reject', 'cancelled'],
    ] as const) {
      await at(`/orders/${reference}`);
      await press(tab.locator(`#${decision} > summary`));
      await type(tab.locator(`#${decision} textarea`), `as agreed with the customer of ${reference}`);
      await looksRight();
      await press(tab.locator(`#${decision} button`));
      await tab.waitForURL(/done=resolveOrder/);
      expect((await app.order(reference)).state).toBe(state);
      await looksRight();
    }

    const first = 1_000;
    startEndlessRun(app.storePath, first);
    for (const end of ['cancelled', 'done'] as const) {
      await at(`/deliveries?status=dead&reference=${GIVEN.broken}`);
      await press(tab.locator('#bulk-replay_events > summary'));
      await press(tab.getByRole('button', { name: 'Count them' }));
      await tab.getByRole('heading', { name: `Replay ${DEAD} events?` }).waitFor();
      expect((await app.api('/v1/bulk')).body.runs).toHaveLength(end === 'cancelled' ? 1 : 2);
      await looksRight();
      await type(tab.locator('#bulk-start-reason'), 'the secret was wrong');
      await press(tab.getByRole('button', { name: `Replay ${DEAD} events` }));
      await tab.waitForURL(/\/bulk\/\d+/);
      if (end === 'cancelled') {
        await looksRight();
        await press(tab.locator('#bulk-cancel > summary'));
        await press(tab.getByRole('button', { name: 'Cancel the rest' }));
        await tab.locator('h1 .badge', { hasText: 'cancelled' }).waitFor();
        await app.api(`/v1/bulk/${first}/cancel`, { body: {} });
      } else {
        await eventually(async () => {
          if (!way.hasScript) await tab.reload();
          expect(await tab.locator('h1 .badge').innerText()).toBe('done');
        });
        const said = await main.innerText();
        for (const words of [`${DEAD} of ${DEAD} events processed.`, 'the secret was wrong'])
          expect(said).toContain(words);
      }
      await looksRight();
    }
    await press(tab.getByRole('link', { name: 'See the events of this filter' }));
    await tab.waitForURL('**/deliveries?*');
    expect(await tab.inputValue('#filter-reference')).toBe(GIVEN.broken);

    await at(`/shop?status=dead&reference=${GIVEN.accepted}`);
    await looksRight();
    const resend = main.locator('.action[id^="resend-"]').first();
    await press(resend.locator('summary'));
    await looksRight();
    await press(resend.getByRole('button'));
    await tab.waitForURL(/done=resendNotice/);

    await at('/system/people');
    await looksRight();
    const row = tab.locator('tr', {
      has: tab.locator('th', { hasText: new RegExp(`^${GIVEN.guest}$`) }),
      hasText: 'End',
    });
    await press(row.locator('summary', { hasText: 'End' }));
    await press(row.getByRole('button', { name: 'End the session' }));
    expect(await main.locator('.notice').innerText()).toBe('The session has ended.');
    await looksRight();

    await at('/orders?state=paid');
    const downloading = tab.waitForEvent('download');
    await press(main.locator('a[download]'));
    expect(readFileSync(await (await downloading).path(), 'utf8')).toContain(`\r\n${GIVEN.accepted},paid,`);
    expect(tab.wrongs).toEqual([]);
  });
});
