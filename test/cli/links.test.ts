import { buffer } from 'node:stream/consumers';
import { expect, it } from 'vitest';
import type { EventDocument } from '../../src/api/events.ts';
import { run } from '../../src/cli/commands.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp } from '../support/app.ts';
import { serveHere } from '../support/http.ts';
import { passOn } from '../support/network.ts';
import { act, HOUR_MS, plan } from '../support/sandbox.ts';
import { openLink, pass, passUntil, type Shop, startDeafShop } from '../support/shop.ts';
import { environmentOf, failing, misunderstood, say } from './settled.ts';

it('says what asking about every link that can still be paid costs, and does it', async () => {
  const shop = await startDeafShop();
  const environment = environmentOf(shop.settled);
  const nothing = await say(['reconcile'], environment);
  expect(nothing.text).toBe(
    "settled knows the id of no link that can still be paid. The service's list is read for links that are not known.\n",
  );
  const link = await openLink(shop, 'order-1');
  await openLink(shop, 'order-2');
  await pass(shop, 7 * HOUR_MS, HOUR_MS);
  await act(shop.sandbox, link, 'pay');

  const dry = await say(['reconcile', '--dry-run'], environment);
  expect(dry.data).toEqual({ dryRun: true, links: 2, requests: 2, etaSeconds: 60 });
  expect(dry.text).toBe('2 links: 2 requests, at most 1 minute. Nothing was done.\n');
  await pass(shop, 2_000);
  expect((await shop.settled.order('order-1')).state).toBe('awaiting_payment');

  const done = await say(['reconcile'], environment);
  expect(done.text).toMatch(/^Asking about [12] links?: [12] requests?, at most 1 minute\.\n$/);
  await pass(shop, 2_000);
  expect((await shop.settled.order('order-1')).state).toBe('paid');
});

/** Runs `reconcile --wait` on a terminal or in a pipe, while the shop's time passes. */
async function waiting(shop: Shop, args: readonly string[], columns: number | null) {
  let text = '';
  let code: number | null = null;
  const surroundings = {
    environment: environmentOf(shop.settled),
    clock: shop.sandbox.clock,
    screen: { columns, colours: false, nowMs: () => shop.sandbox.clock.nowMs() },
    print: async (more: string) => {
      text += more;
      return true;
    },
    printError: (error: string) => {
      text += error;
    },
  };
  const ended = run(['reconcile', '--wait', ...args], surroundings).then((exit) => {
    code = exit;
  });
  await passUntil(shop, async () => code !== null);
  await ended;
  return { code, text };
}

it('waits until all were asked about, shows how far it is, and says what the answers brought', async () => {
  const shop = await startDeafShop();
  const short = await openLink(shop, 'order-1');
  const paid = await openLink(shop, 'order-2');
  await openLink(shop, 'order-3');
  await pass(shop, 7 * HOUR_MS, HOUR_MS);
  await act(shop.sandbox, short, 'pay', { money: 'less' });
  await act(shop.sandbox, paid, 'pay');

  const piped = await waiting(shop, [], null);
  expect(piped.code).toBe(0);
  const [asking, ...lines] = piped.text.split('\n');
  expect(asking).toBe('Asking about 3 links: 3 requests, at most 1 minute.');
  expect(lines.join('\n')).toMatch(
    /^(?:asked about \d of 3 links, about \S+ \S+ left\n)*The service was asked about 3 links in .* s, which brought news about 2 orders\.\n\nORDER +OUTCOME +RULE\n/,
  );
  expect(piped.text).toMatch(/^order-1 +held +money_does_not_agree$/m);
  expect(piped.text).toMatch(/^order-2 +applied +paid$/m);
  expect(piped.text).not.toContain('\r');

  const shown = await waiting(shop, [], 80);
  const [, bar = '', result] = shown.text.split(/(?<=minute\.\n)|(?=The service was asked)/);
  const drawn = bar.split('\r\u001b[K');
  expect(drawn[1]).toMatch(/^asked about 0 of \d links?, about 60 s left$/);
  expect([drawn[0], drawn.at(-1)]).toEqual(['', '']);
  expect(result).toMatch(/^The service was asked about \d links? in .* s, which brought nothing new\.\n$/);

  const data = JSON.parse((await waiting(shop, ['--json'], 80)).text);
  expect(data).toMatchObject({ dryRun: false, asked: data.links, unanswered: 0, news: [] });
  expect(await misunderstood(['reconcile', '--wait', '--dry-run'])).toMatch(/nothing to wait for/);
});

it('finds an answer that was recorded after one with a higher number, as replicas record them', async () => {
  const shop = await startDeafShop();
  for (const reference of ['order-1', 'order-2']) await openLink(shop, reference);
  await pass(shop, 7 * HOUR_MS, HOUR_MS);
  const known = Number((await shop.settled.api('/v1/events')).body.events[0].id);
  let hiddenTimes = 0;
  const apiUrl = await serveHere(async (request, response) => {
    const body = await buffer(request);
    const { status, headers, text } = await passOn(`${shop.settled.apiUrl}${request.url}`, request, body);
    const document = JSON.parse(text);
    const events: EventDocument[] = document.events ?? [];
    const fresh = events.filter(({ id }) => Number(id) > known);
    if (fresh.length > 1 && hiddenTimes++ < 3) document.events = events.filter((event) => event !== fresh.at(-1));
    response.writeHead(status, headers).end(JSON.stringify(document));
  });
  const { code, text } = await waiting({ ...shop, settled: { ...shop.settled, apiUrl } }, [], null);
  expect(code).toBe(EXIT.ok);
  expect(text).toContain('The service was asked about 2 links');
});

it('ends with 75 if the service has no answer about a link, and says how many', async () => {
  const shop = await startDeafShop();
  await openLink(shop, 'order-1');
  await pass(shop, 7 * HOUR_MS, HOUR_MS);
  await plan(shop.sandbox, { fault: 'server-error', count: null });
  const { code, text } = await waiting(shop, [], null);
  expect(code).toBe(EXIT.tryAgain);
  expect(text).toMatch(
    /^1 link was left without an answer: settled continues to ask\. `settled attention` and `settled doctor` say why\.$/m,
  );
});

it('asks about one order at once, or says why it cannot', async () => {
  const shop = await startDeafShop();
  const environment = environmentOf(shop.settled);
  const link = await openLink(shop, 'order-1');
  await act(shop.sandbox, link, 'pay');
  const dry = await say(['reconcile', '--order', 'order-1', '--dry-run'], environment);
  expect(dry.text).toBe("Asking about this order's link costs 1 request. Nothing was done.\n");
  const done = await say(['reconcile', '--order', 'order-1'], environment);
  expect(done.text).toBe('The service was asked. See: settled why order-1\n');
  expect((await shop.settled.order('order-1')).state).toBe('paid');
  expect(await failing(['reconcile', '--order', 'nobodys'], environment)).toMatchObject({
    code: 'not_found',
    exit: EXIT.notFound,
  });
});

it('says that no service is configured', async () => {
  expect(await failing(['reconcile'], environmentOf(await startTestApp()))).toMatchObject({
    code: 'api_not_configured',
    exit: EXIT.configuration,
  });
});
