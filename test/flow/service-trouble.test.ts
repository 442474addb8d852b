import { expect, it } from 'vitest';
import { openLog } from '../../src/observe/log.ts';
import type { ServiceProxy } from '../support/proxies.ts';
import { check, openLink, pass, passUntil, type Shop, startProxiedShop, startShop } from '../support/shop.ts';
import { doctorOf, surfacesOf } from '../support/surfaces.ts';

type Handler = Parameters<ServiceProxy['answerWith']>[0];
const JSON_TYPE = { 'content-type': 'application/json' };
const PAGE = '<!doctype html><title>Bad gateway</title>';
const answering =
  (status: number, text: string, headers: Record<string, string> = JSON_TYPE): Handler =>
  async () => ({ status, headers, text });

/** A log whose lines a test can read. */
function readableLog() {
  const lines: string[] = [];
  const keep = (about: object, message: string) => lines.push(`${JSON.stringify(about)} ${message}`);
  return { lines, log: Object.assign(openLog('silent'), { warn: keep, info: keep }) };
}

const surfaces = ({ settled }: Shop, reference: string) => surfacesOf(settled, reference, ['service']);

const SILENT = {
  page: expect.stringContaining('Nothing: settled can read its store, ask the service and trust its clock.'),
  summary: 'Nothing needs attention.',
  attention: '',
  doctor: '',
  readyz: '200 {"ready":true}',
  strangers: '200 {"ready":true}',
  why: expect.not.stringContaining('since'),
  stats: '',
  metrics: expect.not.stringContaining('settled_needs_person'),
};

const speaking = (kind: string, words: RegExp) => ({
  page: expect.stringMatching(
    new RegExp(`so it learns of payments only from webhooks.*failing service: ${words.source}`),
  ),
  summary: expect.stringMatching(/^1 matter needs attention.*learns of payments only from webhooks\.$/),
  attention: expect.stringMatching(kind === 'service_unanswered' ? words : /./),
  doctor: expect.stringMatching(new RegExp(`^failing service: ${words.source}`)),
  readyz: expect.stringMatching(new RegExp(`^200 .*"troubles":\\["${words.source}`)),
  strangers: '200 {"ready":true}',
  why: expect.stringMatching(words),
  stats: kind,
  metrics: expect.stringContaining(`settled_needs_person{concern="service",kind="${kind}"} 1`),
});

const OUT =
  /The service has not answered since [-:.TZUC \d]+\. 2 unpaid orders may have been paid\. settled still takes webhooks\./;
const UNUSABLE =
  /The service has given no answer that settled can use since [-:.TZUC \d]+\. 2 unpaid orders may have been paid\./;

it('every surface says the same of each trouble with the service, until its first answer', async () => {
  const { lines, log } = readableLog();
  const { shop, proxy } = await startProxiedShop(startShop, { log });
  // One line at the beginning of each trouble, and one at its end.
  const told = () => lines.filter((line) => line.endsWith('a person'));
  await openLink(shop, 'order-1');
  await openLink(shop, 'order-2');
  await pass(shop, 3_000);
  expect(await surfaces(shop, 'order-1')).toEqual(SILENT);
  const troubles: [name: string, handler: Handler, kind: string, words: RegExp][] = [
    ['503', answering(503, '{}'), 'service_unanswered', OUT],
    ['the second outage', answering(500, PAGE, {}), 'service_unanswered', OUT],
    [
      'a broken connection',
      async (_request, _pass, response) => {
        response.destroy();
        return 'answered';
      },
      'service_unanswered',
      OUT,
    ],
    ['a page', answering(200, PAGE, { 'content-type': 'text/html' }), 'service_unanswered', UNUSABLE],
    ['a page that forbids', answering(403, PAGE, { 'content-type': 'text/html' }), 'service_unanswered', UNUSABLE],
    ['half of JSON', answering(200, '{"paymentLink":'), 'service_unanswered', UNUSABLE],
    [
      'too many requests',
      answering(429, '{}'),
      'service_unanswered',
      /The service has refused all requests as too many since/,
    ],
    ['a refused key', answering(401, '{}'), 'api_key_refused', /The service rejects the API key/],
  ];
  for (const [name, handler, kind, words] of troubles) {
    proxy.answerWith(handler);
    await check(shop, 'order-1');
    if (kind === 'service_unanswered')
      expect((await surfaces(shop, 'order-1')).attention, `one failure: ${name}`).toBe('');
    const isShown = async () => {
      await check(shop, 'order-1');
      return (await surfaces(shop, 'order-1')).stats === kind;
    };
    await passUntil(shop, isShown, { withinMs: 130_000, stepMs: 2_000 });
    await pass(shop, 5_000);
    expect(await surfaces(shop, 'order-1'), name).toEqual(speaking(kind, words));
    const checks = await doctorOf(shop.settled.apiUrl, ['service', 'asking']);
    expect(checks, name).toMatch(new RegExp(`^failing service: ${words.source}`, 'm'));
    expect(checks, name).toMatch(
      new RegExp(`^warning asking: .*${words.source}|^warning asking: settled asks nothing`, 'm'),
    );
    expect(told().slice(-1), name).toEqual([expect.stringMatching(new RegExp(`"${kind}".*this needs a person$`))]);
    proxy.passAll();
    await passUntil(shop, async () => (await check(shop, 'order-1')).status === 200, {
      withinMs: 130_000,
      stepMs: 5_000,
    });
    await pass(shop, 5_000);
    expect(await surfaces(shop, 'order-1'), `after ${name}`).toEqual(SILENT);
    expect(told().slice(-1), name).toEqual([expect.stringContaining('no longer')]);
  }
  expect(told()).toHaveLength(2 * troubles.length);
});
