import { expect, it } from 'vitest';
import { signedHeaders } from '../support/deliveries.ts';
import type { Passed } from '../support/network.ts';
import { readableLog } from '../support/observe.ts';
import { act, HOUR_MS, MINUTE_MS } from '../support/sandbox.ts';
import {
  check,
  openLink,
  pass,
  passUntil,
  type Shop,
  startDeafShop,
  startProxiedShop,
  startShop,
  stopSettled,
} from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

const HTML = { 'content-type': 'text/html' };
const JSON_TYPE = { 'content-type': 'application/json' };
const TEN_MEGABYTES = 10 * 1024 * 1024;

/** What the details of one link are answered with, and the fault that this is. */
const SICK: Readonly<Record<string, { fault: string; answer: Passed | 'hang' | 'cut' }>> = {
  failing: { fault: 'service_failed', answer: { status: 500, headers: JSON_TYPE, text: '{}' } },
  html: { fault: 'service_answer_unusable', answer: { status: 200, headers: HTML, text: '<h1>Maintenance</h1>' } },
  huge: {
    fault: 'service_answer_too_large',
    answer: { status: 200, headers: JSON_TYPE, text: `{"x":"${'x'.repeat(TEN_MEGABYTES)}"}` },
  },
  cut: { fault: 'service_unreachable', answer: 'cut' },
  hanging: { fault: 'service_timeout', answer: 'hang' },
};
const WELL = ['well-1', 'well-2', 'well-3'];

async function startSickShop() {
  const { log, lines } = readableLog();
  const { shop, proxy } = await startProxiedShop(startDeafShop, { log });
  const sick = new Map<string, Passed | 'hang' | 'cut'>();
  proxy.answerWith(async ({ path }, _pass, response) => {
    const answer = sick.get(path.split('/').at(-1) ?? '');
    if (answer === 'hang') return 'answered';
    if (answer !== 'cut') return answer;
    response.writeHead(200, { ...JSON_TYPE, 'content-length': 1_000 }).write('{"success":', () => response.destroy());
    return 'answered';
  });
  return { shop, proxy, sick, lines };
}

const stateOf = async ({ settled }: Shop, reference: string) => (await settled.order(reference)).state;

it('names what is wrong with the answer about one link, asks again, and pays the others meanwhile', async () => {
  const { shop, proxy, sick, lines } = await startSickShop();
  const references = [...Object.keys(SICK), ...WELL];
  for (const reference of references) {
    const link = await openLink(shop, reference);
    await act(shop.sandbox, link, 'pay');
    const answer = SICK[reference]?.answer;
    if (answer !== undefined) sick.set(link.id, answer);
  }
  // The schedule asks about all of them; one of the answers never comes, and delays no other.
  await shop.sandbox.clock.advance(2 * 60_000);
  const pages = Object.keys(SICK).map((reference) => check(shop, reference));
  await eventually(async () => {
    for (const reference of WELL) expect(await stateOf(shop, reference)).toBe('paid');
  });
  const metrics = async () => (await shop.settled.api('/metrics')).body;
  expect(await metrics()).not.toMatch(/outcome="service_timeout"\} [1-9]/);
  // The answers that do come may still be on their way.
  await eventually(async () => expect(await metrics()).toMatch(/^settled_api_requests_in_flight [12]$/m));

  for (const { status, body } of await Promise.all(pages)) {
    expect([status, body.title]).toEqual([503, 'service_unavailable']);
    expect(body.detail).toContain('GET /payment-links/{id}');
  }
  await eventually(() => {
    for (const [reference, { fault }] of Object.entries(SICK)) {
      const told = lines.find(({ order, reason }) => order === reference && reason === 'scheduled');
      expect(told).toMatchObject({ level: 'warn', msg: 'a link could not be asked about', fault: { code: fault } });
    }
  });
  for (const reference of Object.keys(SICK)) expect(await stateOf(shop, reference)).toBe('awaiting_payment');

  proxy.passAll();
  const allPaid = async () => (await shop.settled.api('/v1/stats')).body.stats.orders.paid === references.length;
  await passUntil(shop, allPaid, { withinMs: 5 * 60_000, stepMs: 5_000 });
});

it('obeys a 429: nothing is asked until its Retry-After, and then everything', async () => {
  const { shop, proxy, sick } = await startSickShop();
  const limited = await openLink(shop, 'limited');
  const other = await openLink(shop, 'other');
  for (const link of [limited, other]) await act(shop.sandbox, link, 'pay');
  sick.set(limited.id, { status: 429, headers: { ...JSON_TYPE, 'retry-after': '90' }, text: '{}' });
  expect((await check(shop, 'limited')).status).toBe(503);
  proxy.passAll();
  const refused = await check(shop, 'other');
  expect([refused.status, refused.body.title]).toEqual([503, 'service_unavailable']);
  await pass(shop, 80_000, 80_000);
  expect([await stateOf(shop, 'limited'), await stateOf(shop, 'other')]).toEqual(Array(2).fill('awaiting_payment'));
  await pass(shop, 11_000);
  expect((await check(shop, 'other')).body.order.state).toBe('paid');
  await passUntil(shop, async () => (await stateOf(shop, 'limited')) === 'paid', { withinMs: 5 * 60_000 });
});

it('obeys a 429 to the second, ignores its rate headers, and obeys the next one as well', async () => {
  const { shop, sick } = await startSickShop();
  const limited = await openLink(shop, 'limited');
  const headers = { 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '60' };
  sick.set(limited.id, { status: 429, headers: { ...JSON_TYPE, ...headers, 'retry-after': '20' }, text: '{}' });
  // The second time after a pause that ended, and with another answer between them.
  for (let pauses = 1; pauses <= 2; pauses++) {
    const askedAtMs = shop.sandbox.clock.nowMs();
    expect((await check(shop, 'limited')).status).toBe(503);
    const answeredAtMs = shop.sandbox.clock.nowMs();
    const answer = sick.get(limited.id) as Passed;
    sick.clear();
    const paused = await check(shop, 'limited');
    const until = /the API is paused until (\S+),/.exec(paused.body.detail)?.[1] ?? '';
    // The pause began between the two: the sandbox's clock also runs in real time while a slow machine answers.
    expect(Date.parse(until) - askedAtMs).toBeGreaterThanOrEqual(20_000);
    expect(Date.parse(until) - answeredAtMs).toBeLessThan(22_000);
    const nearMs = Date.parse(until) - shop.sandbox.clock.nowMs() - 5_000;
    await pass(shop, nearMs, nearMs);
    expect((await check(shop, 'limited')).status).toBe(503);
    await pass(shop, Date.parse(until) - shop.sandbox.clock.nowMs() + 1);
    expect((await check(shop, 'limited')).status).toBe(200);
    sick.set(limited.id, answer);
  }
});

it('is back as soon as a refused key is put right, and the doctor tells the cause until then', async () => {
  const { shop, proxy } = await startProxiedShop(startDeafShop);
  const service = async () => {
    const { body } = await shop.settled.api('/v1/admin/doctor');
    return body.checks.find(({ name }: { name: string }) => name === 'service');
  };
  await openLink(shop, 'order-1');
  proxy.answerWith(async () => ({ status: 401, headers: JSON_TYPE, text: '{}' }));
  expect((await check(shop, 'order-1')).body.title).toBe('api_key_refused');
  for (let n = 0; n < 2; n++) {
    expect(await service()).toMatchObject({ status: 'failing', detail: expect.stringContaining('401') });
  }
  expect((await check(shop, 'order-1')).body.detail).toContain('the API is paused until');
  proxy.passAll();
  await openLink(shop, 'order-2');
  expect((await check(shop, 'order-1')).status).toBe(200);
  expect(await service()).toMatchObject({ status: 'ok' });
});

it('stops while an answer does not come', async () => {
  const { shop, sick } = await startSickShop();
  const link = await openLink(shop, 'hanging');
  sick.set(link.id, 'hang');
  // Its connection is broken if it is not answered in time.
  const checked = check(shop, 'hanging').catch(() => null);
  await eventually(async () => {
    expect((await shop.settled.api('/metrics')).body).toMatch(/^settled_api_requests_in_flight 1$/m);
  });
  await stopSettled(shop);
  expect((await checked)?.status).not.toBe(200);
});

it.each([
  ['knows no such link', 'production', MINUTE_MS],
  ['refuses to list its links, for an hour', 'sandbox', 3 * HOUR_MS],
] as const)(
  'tells a person of an event that it does not understand if the service %s',
  async (_name, service, withinMs) => {
    const shop = await startShop({ service });
    const { settled, sandbox } = shop;
    const { webhookUrl, webhookSecret } = await settled.reserve('order-1', '100.00');
    const body = JSON.stringify({ events: [{ paymentStatus: 'COMPLETED' }] });
    const headers = signedHeaders(webhookSecret, body, String(sandbox.clock.nowMs()));
    expect((await fetch(webhookUrl, { method: 'POST', body, headers })).status).toBe(200);
    const matters = async () => (await settled.api('/v1/attention')).body.attention;
    await passUntil(shop, async () => (await matters()).length > 0, { withinMs, stepMs: MINUTE_MS / 2 });
    expect(await matters()).toMatchObject([
      {
        kind: 'event_not_understood',
        reference: 'order-1',
        detail: expect.stringMatching(/got no answer that says more/),
      },
    ]);
  },
);
