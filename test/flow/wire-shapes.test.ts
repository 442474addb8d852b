import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { TestApp } from '../support/app.ts';
import { sharedApp, sharedShop } from '../support/shared.ts';
import { pass, passUntil } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';
import { type About, type End, SHAPES, type Shape, signedAs } from './wire_shapes.ts';

const SECRET = 'a signing secret of the wire shapes';
const MINUTE_MS = 60_000;

/** What became of a shape's order. */
type Ended = {
  status: number;
  order: Record<string, unknown>;
  answer: string;
  next: string;
  /** Entries of the order's history, each as one line, by kind. */
  lines: (kind: string) => string[];
};

type Sent = { shape: Shape; about: About; status: number };

/** Registers an order for each shape; returns where its deliveries go. */
async function registerAll(settled: TestApp): Promise<{ shape: Shape; about: About; webhookUrl: string }[]> {
  return Promise.all(
    SHAPES.map(async (shape, n) => {
      const about = { reference: `shape-${n}`, linkId: `pl_shape-${n}` };
      const body = { reference: about.reference, amount: '100.00', id: about.linkId, webhookSecret: SECRET };
      const registered = await settled.api('/v1/links', { body });
      expect(registered.status).toBe(201);
      const webhookUrl = registered.body.link.webhookUrl.replace(/^.*(?=\/hooks\/)/, settled.hooksUrl);
      return { shape, about, webhookUrl };
    }),
  );
}

/** Delivers every shape, all at once, and waits until all are settled. */
async function deliverAll(
  settled: TestApp,
  links: Awaited<ReturnType<typeof registerAll>>,
  { prefix, nowMs }: { prefix: string; nowMs: number },
): Promise<Sent[]> {
  const sent = await Promise.all(
    links.map(async ({ shape, about, webhookUrl }) => {
      const body = Buffer.from(shape.body(about));
      const sign = shape.headers ?? signedAs(({ mac }) => mac.toString('hex'));
      const headers = sign({ secret: SECRET, prefix, body, nowMs });
      const { status } = await fetch(webhookUrl, { method: 'POST', body, headers });
      return { shape, about, status };
    }),
  );
  await eventually(async () => {
    const { events } = (await settled.api('/v1/stats')).body.stats;
    expect(events).toMatchObject({ pending: 0, leased: 0 });
    const { rejections } = (await settled.api('/v1/rejections?limit=200')).body;
    expect(rejections).toHaveLength(SHAPES.filter(({ ends }) => ends.is === 'refused').length);
  });
  return sent;
}

async function lookAt(settled: TestApp, { about, status }: Sent): Promise<Ended> {
  const { order, answer, next, entries } = (await settled.api(`/v1/orders/${about.reference}/timeline`)).body;
  type Entry = { kind: string; summary: string; details: string[] };
  const lines = (kind: string) =>
    (entries as Entry[])
      .filter((entry) => entry.kind === kind)
      .map(({ summary, details }) => [summary, ...details].join('; '));
  return { status, order, answer, next: next.join('\n'), lines };
}

function expectPaid(ended: Ended, learnedBy: 'webhook' | 'reconciliation', flags: readonly string[] = []): void {
  expect(ended.order).toMatchObject({
    state: 'paid',
    learnedBy,
    flags,
    holds: [],
    payments: [{ status: 'completed', amount: '100.00', currency: 'BRL' }],
  });
  expect(ended.answer).toContain('is paid');
}

/** A sentence about it is in the answer to `why`. */
function expectEnd(ended: Ended, end: End): void {
  const { order, answer, next, status } = ended;
  if (end.is === 'paid') {
    expect(status).toBe(200);
    expectPaid(ended, 'webhook', end.flags);
    const unnamed = end.flags?.includes('money_unnamed') ? [expect.stringContaining('(money_unnamed)')] : [];
    expect(ended.lines('attention')).toEqual(unnamed);
    return;
  }
  if (end.is === 'held') {
    expect(order).toMatchObject({ state: 'held', holds: [{ reason: end.reason }] });
    expect(answer).toContain(`(${end.reason})`);
    return;
  }
  expect(order).toMatchObject({ state: 'awaiting_payment', payments: [] });
  expect(answer).toContain('is not paid');
  switch (end.is) {
    case 'unread': {
      const matters = ended.lines('attention');
      expect(matters).toEqual([expect.stringContaining('event_not_understood')]);
      expect(matters[0]).toMatch(end.why);
      expect(answer).toMatch(/does not understand|could not settle: a person must look/);
      expect(next).toMatch(/settled events show \d+/);
      break;
    }
    case 'attention':
      expect(ended.lines('attention')).toEqual([expect.stringContaining(end.kind)]);
      break;
    case 'refused':
      expect(status).toBe(end.status ?? 401);
      expect(answer).toContain(`(${end.reason})`);
      expect(ended.lines('rejected')).toEqual([expect.stringContaining(end.reason)]);
      break;
    case 'stale':
      expect(status).toBe(400);
      expect(answer).toContain('stale timestamp');
      expect(next).toContain('clock');
      break;
    case 'understood':
      expect(answer).toContain(`settled received: ${end.type}.`);
      expect(ended.lines('attention')).toEqual([]);
      break;
  }
}

const byShape = SHAPES.map((shape, at) => [shape.name, at] as const);

describe('a delivery of any shape, if no API can be asked', () => {
  const app = sharedApp();
  let ended: Ended[] = [];

  beforeAll(async () => {
    const settled = app();
    const at = { prefix: 'x-service', nowMs: Date.now() };
    const sent = await deliverAll(settled, await registerAll(settled), at);
    ended = await Promise.all(sent.map((one) => lookAt(settled, one)));
  });

  it('is one of at least 110, each of another name', () => {
    expect(new Set(byShape.map(([name]) => name)).size).toBe(SHAPES.length);
    expect(SHAPES.length).toBeGreaterThanOrEqual(110);
  });

  it.each(byShape)('%s', (_name, at) => {
    expectEnd(ended[at] as Ended, (SHAPES[at] as Shape).ends);
  });

  it('is in attention or held, if it is not paid; or refused for a reason, or about no payment', async () => {
    const { attention } = (await app().api('/v1/attention?limit=200')).body;
    const told = new Set(attention.map(({ reference }: { reference: string }) => reference));
    const unheard = ended.filter(({ order, lines }) => {
      if (order.state === 'paid' || order.state === 'held' || told.has(order.reference)) return false;
      return lines('rejected').length + lines('stale').length === 0;
    });
    const ends = SHAPES.filter(({ ends: { is } }) => is === 'understood');
    expect(unheard).toHaveLength(ends.length);
  });
});

type Truth = (linkId: string) => object;
const UNPAID: Truth = () => ({ paymentStatus: 'NOT_STARTED', payments: [] });
const PAID: Truth = (linkId) => paidWith(linkId, 100);
const LESS: Truth = (linkId) => ({ ...paidWith(linkId, 50), amount: 50 });

function paidWith(linkId: string, amount: number): object {
  const payment = { id: linkId.replace('pl_', 'pay_'), status: 'COMPLETED', quote: { amount, currency: 'BRL' } };
  return { status: 'INACTIVE', paymentStatus: 'COMPLETED', payments: [payment] };
}

/** A service whose answers about a link the test sets. */
async function startTruth(): Promise<{ url: string; server: Server; tell: (truth: Truth) => void }> {
  let truth = UNPAID;
  const server = createServer((request, response) => {
    const id = /\/payment-links\/([^/?]+)/.exec(request.url ?? '')?.[1] ?? '';
    const reference = id.replace('pl_', '');
    const link = { id, externalReference: reference, amount: 100, currency: 'BRL', status: 'ACTIVE' };
    const body =
      id === ''
        ? { success: true, paymentLinks: [], pagination: { page: 1, totalPages: 1 } }
        : { success: true, paymentLink: { ...link, ...truth(id) } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api/v1`,
    server,
    tell: (told) => {
      truth = told;
    },
  };
}

const service = await startTruth();
afterAll(() => {
  service.server.closeAllConnections();
  service.server.close();
});

describe('a delivery of any shape, if the API can be asked, under the header names of a brand', () => {
  const environment = { SETTLED_HEADER_PREFIX: 'x-acme' };
  const shop = sharedShop({ apiUrl: service.url, environment });

  const asks = ({ ends: { is } }: Shape) => is !== 'paid' && is !== 'understood';
  /** Of those that must be asked about every fourth is one of which the service says that less was paid. */
  const isLess = (at: number) => at % 4 === 0 && asks(SHAPES[at] as Shape);
  let ended: Ended[] = [];

  beforeAll(async () => {
    const { settled, sandbox } = shop();
    const links = await registerAll(settled);
    // Until the service was asked about each because it is new, and by the first two times of the schedule.
    await pass(shop(), (SHAPES.length / 10) * MINUTE_MS, MINUTE_MS);
    service.tell((linkId) => {
      const at = Number(linkId.replace('pl_shape-', ''));
      if (SHAPES[at]?.ends.is === 'understood') return UNPAID(linkId);
      return isLess(at) ? LESS(linkId) : PAID(linkId);
    });
    const sent = await deliverAll(settled, links, { prefix: 'x-acme', nowMs: sandbox.clock.nowMs() });
    // Ten links a minute are asked about for what a forger can cause.
    const isOver = async () => {
      const { checks, events } = (await settled.api('/v1/stats')).body.stats;
      return checks + events.pending + events.leased === 0;
    };
    await passUntil(shop(), isOver, { stepMs: MINUTE_MS });
    ended = await Promise.all(sent.map((one) => lookAt(settled, one)));
  }, 120_000);

  it.each(byShape)('%s', (_name, at) => {
    const shape = SHAPES[at] as Shape;
    const { ends } = shape;
    const found = ended[at] as Ended;
    if (ends.is === 'understood') {
      expect(found.order).toMatchObject({ state: 'awaiting_payment', payments: [] });
      expect(found.answer).toContain(`settled received: ${ends.type}.`);
    } else if (isLess(at)) {
      expect(found.order).toMatchObject({ state: 'held', holds: [{ reason: 'amount_mismatch' }] });
    } else if (asks(shape)) {
      expectPaid(found, 'reconciliation');
      expect(found.lines('reading').join('\n')).toMatch(/settled asked the service, because/);
    } else {
      expectPaid(found, 'webhook');
    }
    const open = found.lines('attention').filter((line) => !line.includes('link_mismatch'));
    expect(open).toEqual([]);
  });
});
