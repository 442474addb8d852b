import { Agent } from 'node:http';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { deliver, eventOf, exchange, readReserved } from '../../prove/harness/send.ts';
import { OPERATOR_TOKEN, type Serving } from '../../prove/harness/settled.ts';
import { eachAtOnce } from '../../prove/harness/wait.ts';
import { startServing } from '../process/serving.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { peek } from '../support/rows.ts';
import { times } from '../support/timing.ts';

const ORDERS = times(1_000, 10_000);
const AT_ONCE = 48;
/** Every so many orders are told pending first. */
const PENDING_FIRST = 4;
const NOTICES = ORDERS + ORDERS / PENDING_FIRST;

it(`a reader that follows the feed sees each notice of ${ORDERS} orders once, those of an order in their order`, async () => {
  const storePath = join(testFolder(), 'settled.db');
  const serving = await startServing(storePath);
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE });
  const reading = readAll(serving);
  await eachAtOnce(AT_ONCE, [...Array(ORDERS).keys()], (n) => payNew(serving, agent, n));
  const seen = await reading;
  agent.destroy();

  const written = peek(
    storePath,
    `SELECT 'msg_' || n.key || '_' || n.notice_id AS id, o.reference, n.type
     FROM outbox n JOIN orders o ON o.key = n.order_key ORDER BY n.key`,
  );
  expect(seen.map(({ id }) => id)).toEqual(written.map(({ id }) => id));
  const typesOf = new Map<string, string[]>();
  for (const { reference, type } of seen) typesOf.set(reference, [...(typesOf.get(reference) ?? []), type]);
  expect(typesOf.size).toBe(ORDERS);
  const wrong = [...typesOf].filter(([reference, types]) => String(types) !== String(expectedTypes(reference)));
  expect(wrong).toEqual([]);
});

function expectedTypes(reference: string): string[] {
  return isPendingFirst(Number(reference.slice('order-'.length)))
    ? ['order.payment_pending', 'order.paid']
    : ['order.paid'];
}

function isPendingFirst(n: number): boolean {
  return n % PENDING_FIRST === 0;
}

/** Reserves a link, then delivers what the service says of its payment. */
async function payNew(serving: Serving, agent: Agent, n: number): Promise<void> {
  const reference = `order-${n}`;
  const made = await exchange({
    agent,
    port: serving.operatorPort,
    path: '/v1/links',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ reference, amount: '100.00' }),
  });
  const link = readReserved(JSON.parse(made.text));
  const money = { linkId: `pl_${reference}`, amount: '100.00', paymentId: `pay_${reference}` };
  const pending = paymentEvent({ id: `evt_${reference}_p`, status: 'PENDING', ...money });
  for (const body of isPendingFirst(n) ? [pending, eventOf(link)] : [eventOf(link)]) {
    const { status } = await deliver(serving, link, body, agent);
    if (status !== 200) throw new Error(`a delivery was answered ${status}`);
  }
}

type Seen = { id: string; reference: string; type: string };

/** Follows the feed until it has all; now and then it is interrupted within a page, and goes on from there. */
async function readAll({ api }: Serving): Promise<Seen[]> {
  const seen: Seen[] = [];
  for (let after = ''; seen.length < NOTICES; ) {
    const page = await api(`/v1/feed?limit=${1 + Math.floor(Math.random() * 400)}&wait=10${after}`);
    expect(page.status).toBe(200);
    const { notices, cursor } = page.body;
    const read = Math.random() < 0.1 ? notices.slice(0, Math.ceil(notices.length / 2)) : notices;
    for (const { id, type, data } of read) seen.push({ id, type, reference: data.order.reference });
    after = `&after=${read.length === notices.length ? cursor : read.at(-1).cursor}`;
  }
  return seen;
}
