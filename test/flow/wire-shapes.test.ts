import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type About, type End, SHAPES, type Shape } from '../paylink/wire_shapes.ts';
import type { TestApp } from '../support/app.ts';
import { signatureHex } from '../support/deliveries.ts';
import { listen } from '../support/network.ts';
import { sharedApp, sharedShop } from '../support/shared.ts';
import { pass, passUntil } from '../support/shop.ts';
import { eventually } from '../support/timing.ts';

/**
 * One shape of each end, from the delivery to what a person is told. paylink/shapes.test.ts reads all of them, and has what
 * the rules make of them.
 */
const SENT: readonly Shape[] = [
  'data',
  'ids alone',
  'two types',
  'an unknown type under type',
  'another link',
  'XML',
  'no news: payment_link.created',
].map((wanted) => SHAPES.find(({ name }) => name === wanted) as Shape);

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
    SENT.map(async (shape, n) => {
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
      const signature = signatureHex(SECRET, String(nowMs), body);
      const headers = { [`${prefix}-signature`]: signature, [`${prefix}-timestamp`]: String(nowMs) };
      const { status } = await fetch(webhookUrl, { method: 'POST', body, headers });
      return { shape, about, status };
    }),
  );
  await eventually(async () => {
    const { events } = (await settled.api('/v1/stats')).body.stats;
    expect(events).toMatchObject({ pending: 0, leased: 0 });
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
    case 'understood':
      expect(answer).toContain(`settled received: ${end.type}.`);
      expect(ended.lines('attention')).toEqual([]);
      break;
  }
}

const byShape = SENT.map((shape, at) => [shape.name, at] as const);

describe('a delivery of any shape, if no API can be asked', () => {
  const app = sharedApp();
  let ended: Ended[] = [];

  beforeAll(async () => {
    const settled = app();
    const at = { prefix: 'x-service', nowMs: Date.now() };
    const sent = await deliverAll(settled, await registerAll(settled), at);
    ended = await Promise.all(sent.map((one) => lookAt(settled, one)));
  });

  it.each(byShape)('%s', (_name, at) => {
    expectEnd(ended[at] as Ended, (SENT[at] as Shape).ends);
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
async function startTruth(): Promise<{ url: string; close: () => void; tell: (truth: Truth) => void }> {
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
  const { url, close } = await listen(server);
  return {
    url: `${url}/api/v1`,
    close,
    tell: (told) => {
      truth = told;
    },
  };
}

const service = await startTruth();
afterAll(service.close);

describe('a delivery of any shape, if the API can be asked, under the header names of a brand', () => {
  const environment = { SETTLED_HEADER_PREFIX: 'x-acme' };
  const shop = sharedShop({ apiUrl: service.url, environment });

  const asks = ({ ends: { is } }: Shape) => is !== 'paid' && is !== 'understood';
  /** Of one that must be asked about the service says that less was paid. */
  const isLess = (at: number) => SENT[at]?.name === 'an unknown type under type';
  let ended: Ended[] = [];

  beforeAll(async () => {
    const { settled, sandbox } = shop();
    const links = await registerAll(settled);
    await pass(shop(), MINUTE_MS, MINUTE_MS);
    service.tell((linkId) => {
      const at = Number(linkId.replace('pl_shape-', ''));
      if (SENT[at]?.ends.is === 'understood') return UNPAID(linkId);
      return isLess(at) ? LESS(linkId) : PAID(linkId);
    });
    const sent = await deliverAll(settled, links, { prefix: 'x-acme', nowMs: sandbox.clock.nowMs() });
    const isOver = async () => {
      const { checks, events } = (await settled.api('/v1/stats')).body.stats;
      return checks + events.pending + events.leased === 0;
    };
    await passUntil(shop(), isOver, { stepMs: MINUTE_MS });
    ended = await Promise.all(sent.map((one) => lookAt(settled, one)));
  }, 120_000);

  it.each(byShape)('%s', (_name, at) => {
    const shape = SENT[at] as Shape;
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
