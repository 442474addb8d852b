import { describe, expect, it } from 'vitest';
import type { OpenedService } from '../../src/paylink/client.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { API_KEY, faultOf, NEW_LINK, openClient, startAnswering, startPeer, TestBudget } from './peer.ts';

/** The client of a sandbox, with its key. */
async function startWithSandbox(options: Parameters<typeof startTestSandbox>[0] = {}) {
  const sandbox = await startTestSandbox({ apiKey: API_KEY, ...options });
  return { sandbox, ...openClient(`${sandbox.url}/api/v1`) };
}

async function act(sandbox: TestSandbox, path: string, body: object = {}): Promise<void> {
  expect(await sandbox.control(`/links/${path}`, { body })).toMatchObject({ status: 200 });
}

describe('paylink: the calls', () => {
  it('read the profile', async () => {
    const { service, budget } = await startWithSandbox();
    const { value, number, dateMs } = await service.profile('hint');
    expect(value).toEqual({ id: expect.stringMatching(/./), businessName: 'Sandbox Merchant', status: 'ACTIVE' });
    expect(number).toBe(1);
    expect(Math.abs((dateMs as number) - Date.now())).toBeLessThan(5_000);
    expect(budget.taken).toMatchObject([{ class: 'hint', slots: 50, deadlineMs: 10_000 }]);
    expect(budget.last()).toMatchObject({ seen: { limit: 60, remaining: 59 }, pause: null, standing: 'well' });
  });

  it('create a link with everything that was given, the amount to the cent', async () => {
    const { service, sandbox } = await startWithSandbox();
    const { value, body } = await service.createLink(NEW_LINK, 'create');
    expect(value).toEqual({
      id: expect.stringMatching(/./),
      webhookSecrets: [],
      reference: 'order-1',
      money: { amount: '120.5', currency: 'BRL' },
      status: 'ACTIVE',
      url: `${sandbox.url}/pay/${value.id}`,
      shortUrl: expect.stringContaining(`${sandbox.url}/s/`),
      webhookUrl: NEW_LINK.webhookUrl,
      createdAtMs: expect.any(Number),
      expiresAtMs: Date.parse(NEW_LINK.expiresAt),
      paymentStatus: 'NOT_STARTED',
      payments: 0,
    });
    expect(JSON.parse(Buffer.from(body).toString()).paymentLink.id).toBe(value.id);
    const stored = (await sandbox.call(`/payment-links/${value.id}`)).body.paymentLink;
    expect(stored).toMatchObject({
      title: 'Two chairs',
      amount: 120.5,
      description: 'Oak, with arms',
      metadata: { cart: { items: [1, 2] } },
      callbackUrl: 'https://shop.example/thanks',
    });
  });

  it('leave out what is null', async () => {
    const peer = await startAnswering(201, { paymentLink: { id: 'pl_1' } });
    const bare = { ...NEW_LINK, description: null, metadata: null, callbackUrl: null };
    await openClient(peer.url).service.createLink(bare, 'create');
    const [request] = peer.requests;
    expect(Object.keys(JSON.parse(request?.body ?? ''))).toEqual([
      'title',
      'amount',
      'externalReference',
      'expiresAt',
      'webhookUrl',
      'webhookSecret',
    ]);
    expect(request).toMatchObject({
      method: 'POST',
      headers: { 'x-api-key': API_KEY, accept: 'application/json', 'content-type': 'application/json' },
    });
  });

  it.each([
    ['creation-status=200'],
    ['creation-envelope=in-link'],
    ['creation-envelope=beside-link'],
    ['creation-envelope=bare'],
    ['is-active=status-active'],
  ])('understand a creation if the service has %s, and never hold its secret', async (silence) => {
    const { service } = await startWithSandbox({ switches: [silence] });
    const { value } = await service.createLink(NEW_LINK, 'create');
    expect(value).toMatchObject({ reference: 'order-1', webhookUrl: NEW_LINK.webhookUrl });
    expect(JSON.stringify(value)).not.toContain(NEW_LINK.webhookSecret);
  });

  it('understand a creation that is wrapped in data', async () => {
    for (const data of [{ paymentLink: { id: 'pl_1' } }, { id: 'pl_1' }]) {
      const peer = await startAnswering(201, { success: true, data });
      const { value } = await openClient(peer.url).service.createLink(NEW_LINK, 'create');
      expect(value).toMatchObject({ id: 'pl_1', status: 'UNKNOWN' });
    }
  });

  it('find the link of a reference with any characters', async () => {
    const { service } = await startWithSandbox();
    for (const externalReference of ['a&b=c?#/%', 'ação 1', 'x']) {
      const { value } = await service.createLink({ ...NEW_LINK, externalReference }, 'create');
      const found = await service.findLinks(externalReference, 'create');
      expect(found.value).toMatchObject([{ id: value.id, reference: externalReference }]);
    }
    expect((await service.findLinks('nobody', 'create')).value).toEqual([]);
  });

  it('find no other link if the service ignores the filter', async () => {
    const paymentLinks = [
      { id: 'pl_1', externalReference: 'order-1' },
      { id: 'pl_2', externalReference: 'order-10' },
      { id: 'pl_3' },
    ];
    const peer = await startAnswering(200, { success: true, paymentLinks });
    const { value } = await openClient(peer.url).service.findLinks('order-10', 'create');
    expect(value).toMatchObject([{ id: 'pl_2' }]);
    expect(peer.requests).toMatchObject([{ path: '/api/v1/payment-links?externalReference=order-10' }]);
  });

  it.each([
    ['on the third of its pages', (page: number) => page, 9, 3, ['pl_300'], true],
    ['behind more than five pages', (page: number) => page, 99, 5, [], false],
    ['nowhere: there are two pages', (page: number) => page, 2, 2, [], true],
    ['nowhere: all pages are one', () => 1, null, 2, [], false],
  ])(
    'look through a list whose filter the service ignores: the link is %s',
    async (_at, shownOf, totalPages, asked, ids, isWhole) => {
      const peer = await startPeer(({ url }, response) => {
        const page = shownOf(Number(new URL(`http://x${url}`).searchParams.get('page') ?? 1));
        const nth = totalPages === 99 ? 7 : 3;
        const paymentLinks = [1, 2].map((at) => ({ id: `pl_${page}${at}`, externalReference: `other-${page}${at}` }));
        if (page === nth) paymentLinks.push({ id: 'pl_300', externalReference: 'order 1' });
        const pagination = totalPages === null ? {} : { page, totalPages };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ success: true, paymentLinks, pagination }));
      });
      const found = await openClient(peer.url).service.findLinks('order 1', 'create');
      expect([found.value.map(({ id }) => id), found.isWhole]).toEqual([ids, isWhole]);
      expect(peer.requests).toHaveLength(asked);
      expect(peer.requests[1]?.path).toBe('/api/v1/payment-links?externalReference=order%201&page=2');
    },
  );

  it('list links, the newest first, page by page', async () => {
    const { service, sandbox } = await startWithSandbox({ rateLimit: null });
    for (let n = 0; n < 21; n++) {
      await sandbox.call('/payment-links', { body: { title: 'One', amount: 26, externalReference: `order-${n}` } });
    }
    const first = (await service.listLinks(1, 'janitor')).value;
    expect(first.totalPages).toBe(2);
    expect(first.links).toHaveLength(20);
    expect(first.links[0]).toMatchObject({
      reference: 'order-20',
      status: 'ACTIVE',
      paymentStatus: null,
      payments: 0,
      webhookUrl: null,
    });
    expect((await service.listLinks(2, 'janitor')).value.links).toMatchObject([{ reference: 'order-0' }]);
  });

  it('show a link with what became of it', async () => {
    const { service, sandbox } = await startWithSandbox();
    const { id } = (await service.createLink(NEW_LINK, 'create')).value;
    await act(sandbox, `${id}/pay`);
    expect((await service.showLink(id, 'confirm')).value).toMatchObject({
      id,
      status: 'INACTIVE',
      paymentStatus: 'COMPLETED',
      payments: 1,
    });
  });

  it('encode an id in the path', async () => {
    const peer = await startAnswering(404, {});
    await faultOf(openClient(peer.url).service.showLink('../a b?c#d', 'hint'));
    expect(peer.requests).toMatchObject([{ path: '/api/v1/payment-links/..%2Fa%20b%3Fc%23d' }]);
  });

  it('number what they read by their slots', async () => {
    const { service } = await startWithSandbox();
    const numbers = [await service.profile('hint'), await service.profile('create')].map((it) => it.number);
    expect(numbers).toEqual([1, 2]);
  });

  it('use a connection again when they follow each other', async () => {
    const peer = await startAnswering(200, { merchant: { id: 'm_1' } });
    const { service } = openClient(peer.url);
    for (let n = 0; n < 20; n++) await service.profile('hint');
    expect(peer.connections()).toBeLessThanOrEqual(3);
  });
});

describe('paylink: reading an answer', () => {
  const details = { id: 'pl_1', status: 'active', payments: [] };
  const seen = async (link: object) => {
    const peer = await startAnswering(200, { paymentLink: { ...details, ...link } });
    return (await openClient(peer.url).service.showLink('pl_1', 'hint')).value;
  };

  it('keeps an unknown status, in capitals', async () => {
    expect(await seen({ status: ' archived ' })).toMatchObject({ status: 'ARCHIVED' });
  });

  it('keeps an amount by its own characters', async () => {
    const text = '{"paymentLink":{"id":7,"status":"ACTIVE","payments":[],"amount":100.50,"currency":"brl"}}';
    const peer = await startAnswering(200, text);
    const { value } = await openClient(peer.url).service.showLink('7', 'hint');
    expect(value).toMatchObject({ id: '7', money: { amount: '100.50', currency: 'BRL' } });
  });

  it.each(['javascript:alert(1)', 'data:text/html,x', '/pay/1', `https://x.example/${'x'.repeat(2048)}`, 7])(
    'takes %j for no address',
    async (url) => {
      expect(await seen({ url, shortUrl: url })).toMatchObject({ url: null, shortUrl: null });
    },
  );

  it.each(['2030-01-01', '2030-01-01T00:00:00', 'tomorrow', '2030-13-01T00:00:00Z', 1_900_000_000_000])(
    'takes %j for no instant',
    async (expiresAt) => {
      expect(await seen({ expiresAt })).toMatchObject({ expiresAtMs: null });
    },
  );

  it('reads an instant of any zone', async () => {
    const { expiresAtMs } = await seen({ expiresAt: '2030-01-01T03:00:00.5+03:00' });
    expect(expiresAtMs).toBe(Date.UTC(2030, 0, 1, 0, 0, 0, 500));
  });

  it('ignores what it does not know, names that every object has among it', async () => {
    const text =
      '{"success":true,"__proto__":{"paymentLink":1},"more":[{}],"paymentLink":{"id":"pl_1","status":"ACTIVE",' +
      '"payments":[],"__proto__":{"url":"https://evil.example/"},"constructor":{"prototype":{"url":"https://evil.example/"}}}}';
    const peer = await startAnswering(200, text);
    const { value } = await openClient(peer.url).service.showLink('pl_1', 'hint');
    expect(value).toMatchObject({ id: 'pl_1', url: null });
  });
});

describe('paylink: the budget', () => {
  const RETRY_AT_MS = Date.UTC(2030, 0, 1);

  /** The fault of a call while the budget has no slot. */
  async function spent(call: (service: OpenedService) => Promise<unknown>, pausedUntilMs: number | null) {
    const peer = await startPeer((_request, response) => response.end());
    const budget = new TestBudget();
    budget.takeBudget = async () => ({ outcome: 'spent', retryAtMs: RETRY_AT_MS, pausedUntilMs }) as never;
    const fault = await faultOf(call(openClient(peer.url, { budget }).service));
    expect(peer.requests).toEqual([]);
    expect(budget.returned).toEqual([]);
    return fault;
  }

  it.each<[string, (service: OpenedService) => Promise<unknown>]>([
    ['opening links', (service) => service.createLink(NEW_LINK, 'create')],
    ['opening links', (service) => service.createLink(NEW_LINK, 'confirm')],
    ['checks', (service) => service.showLink('pl_1', 'confirm')],
    ['checks of what was heard', (service) => service.showLink('pl_1', 'hint')],
    ['scheduled checks', (service) => service.listLinks(1, 'janitor')],
  ])('sends nothing if no slot is left, and says when the next one is free for %s', async (purpose, call) => {
    const fault = await spent(call, null);
    expect(fault).toMatchObject({
      code: 'api_budget_spent',
      kind: 'transient',
      retryAtMs: RETRY_AT_MS,
      mayHaveArrived: false,
    });
    expect(fault.message).toContain('was not sent');
    expect(fault.message).toContain(`The next slot for ${purpose} is free at 2030-01-01T00:00:00.000Z.`);
  });

  it('sends nothing while the API is paused, and says until when', async () => {
    const fault = await spent((service) => service.showLink('pl_1', 'confirm'), RETRY_AT_MS - 1_000);
    expect(fault).toMatchObject({ code: 'api_budget_spent', retryAtMs: RETRY_AT_MS });
    expect(fault.message).toContain('the API is paused until 2029-12-31T23:59:59.000Z');
  });

  it('does not hide an answer when a slot cannot be given back', async () => {
    const peer = await startAnswering(200, { merchant: { id: 'm_1' } });
    const budget = new TestBudget();
    budget.returnBudget = () => Promise.reject(new Error('the store is busy'));
    const lost: unknown[] = [];
    const { service } = openClient(peer.url, { budget, onSlotLost: (error) => lost.push(error) });
    expect((await service.profile('hint')).value.id).toBe('m_1');
    expect(lost).toMatchObject([{ message: 'the store is busy' }]);
  });

  it('is asked before the key travels', async () => {
    const peer = await startAnswering(200, { merchant: { id: 'm_1' } });
    const budget = new TestBudget();
    const waiting = Promise.withResolvers<void>();
    const { takeBudget } = budget;
    budget.takeBudget = async (ask) => {
      await waiting.promise;
      return takeBudget.call(budget, ask);
    };
    const asking = openClient(peer.url, { budget }).service.profile('hint');
    await openClient(peer.url).service.profile('hint');
    expect(peer.requests).toHaveLength(1);
    waiting.resolve();
    await asking;
    expect(peer.requests).toHaveLength(2);
  });

  it('tells every call and how it ended', async () => {
    const peer = await startPeer((request, response) => {
      if (request.url === '/api/v1/merchant/profile') response.end('{"merchant":{"id":"m_1"}}');
      else response.writeHead(500).end();
    });
    const { service, outcomes } = openClient(peer.url);
    await service.profile('hint');
    await faultOf(service.showLink('pl_1', 'hint'));
    expect(outcomes).toEqual(['GET /merchant/profile ok', 'GET /payment-links/{id} service_failed']);
  });
});
