import { createHash } from 'node:crypto';
import { benchLink } from '../deliveries.ts';
import { noteSettled, receive } from '../receiver.ts';

/**
 * The textbook receiver on a queue that others made: a delivery is answered when its job is in the queue, and workers of
 * the same process settle it. Orders and what follows stand in the queue's store, the links' secrets in memory.
 * Arguments: port, `bullmq`, `pg-boss` or `graphile-worker`, the store's address, and the number of links.
 *
 * Each queue is configured as its documentation advises for throughput, or as was measured to be faster.
 */
const [port, peer, address, count] = process.argv.slice(2);

/** The payment that a job tells of; null if nothing was paid, or not for the link that was delivered to. */
function paymentOf({ reference, event }) {
  const { paymentStatus, paymentLink, latestPayment } = event.data;
  if (paymentStatus !== 'COMPLETED' || paymentLink.externalReference !== reference) return null;
  const amountMinor = Math.round(paymentLink.amount * 100);
  return { reference, paymentId: latestPayment.id, amountMinor, currency: paymentLink.currency };
}

/** A script of Redis runs alone, and is one entry of its log: order, ledger, history and notice. */
const SETTLE_IN_REDIS = `
  local reference, paymentId, amountMinor, currency, nowMs, notice = unpack(ARGV)
  local state, ownAmount, ownCurrency = unpack(redis.call('HMGET', KEYS[1], 'state', 'amount_minor', 'currency'))
  if state == 'paid' or ownAmount ~= amountMinor or ownCurrency ~= currency then return end
  redis.call('HSET', KEYS[1], 'state', 'paid', 'paid_at_ms', nowMs, 'payment_id', paymentId)
  redis.call('XADD', KEYS[2], '*', 'payment_id', paymentId, 'amount_minor', amountMinor, 'at_ms', nowMs)
  redis.call('XADD', KEYS[3], '*', 'at_ms', nowMs, 'what', state .. ' -> paid')
  redis.call('XADD', KEYS[4], '*', 'reference', reference, 'type', 'order.paid', 'body', notice)`;

async function bullmq() {
  const { Queue, Worker } = await import('bullmq');
  const { Redis } = await import('ioredis');
  const connection = new Redis(address, { maxRetriesPerRequest: null });
  connection.defineCommand('settle', { numberOfKeys: 4, lua: SETTLE_IN_REDIS });
  const settle = async ({ data }) => {
    const payment = paymentOf(data);
    if (payment === null) return;
    const { reference, paymentId, amountMinor, currency } = payment;
    const now = new Date();
    const order = { reference, amountMinor, currency, state: 'paid', payment: { id: paymentId } };
    const notice = JSON.stringify({ type: 'order.paid', timestamp: now.toISOString(), data: { order } });
    const keys = [`order:${reference}`, `ledger:${reference}`, `history:${reference}`, 'outbox'];
    await connection.settle(...keys, reference, paymentId, amountMinor, currency, now.getTime(), notice);
  };
  const worker = new Worker('deliveries', settle, { connection, concurrency: 50 });
  worker.on('completed', ({ data }) => noteSettled(data.event));
  worker.on('error', fail);
  const queue = new Queue('deliveries', { connection });
  // A job stays when it is done, so that its id refuses the same event later.
  return (job) => queue.add('settle', job, { jobId: job.event.id });
}

/** One statement, for any number of payments: those that agree with orders that are not paid, and what follows. */
const SETTLE = `
  WITH given AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
      AS given (reference, payment_id, amount_minor, currency)
  ), paid AS (
    UPDATE orders SET state = 'paid', paid_at_ms = $5, payment_id = given.payment_id
    FROM given
    WHERE orders.reference = given.reference AND orders.amount_minor = given.amount_minor
      AND orders.currency = given.currency AND orders.state <> 'paid'
    RETURNING orders.*, old.state AS before
  ), ledger AS (
    INSERT INTO ledger (order_key, payment_id, amount_minor, at_ms) SELECT key, payment_id, amount_minor, $5 FROM paid
  ), history AS (
    INSERT INTO history (order_key, at_ms, what) SELECT key, $5, before || ' -> paid' FROM paid
  )
  INSERT INTO outbox (notice_id, order_key, type, body, created_at_ms)
  SELECT gen_random_uuid(), key, 'order.paid', json_build_object('type', 'order.paid', 'timestamp', $6::text,
    'data', json_build_object('order', json_build_object('reference', reference, 'amountMinor', amount_minor,
      'currency', currency, 'state', state, 'payment', json_build_object('id', payment_id)))), $5
  FROM paid`;

/** What `SETTLE` takes for these jobs. */
function valuesOf(jobs) {
  const payments = jobs.map(paymentOf).filter((payment) => payment !== null);
  const column = (name) => payments.map((payment) => payment[name]);
  const now = new Date();
  const columns = [column('reference'), column('paymentId'), column('amountMinor'), column('currency')];
  return [...columns, now.getTime(), now.toISOString()];
}

async function pgBoss() {
  const { PgBoss } = await import('pg-boss');
  const boss = new PgBoss({ connectionString: address, max: 20 });
  boss.on('error', fail);
  await boss.start();
  await boss.createQueue('deliveries');
  // Not with `notify`: PostgreSQL commits transactions that notify one after the other, which halves the rate.
  const options = {
    ...{ batchSize: 100, localConcurrency: 2, pollingIntervalSeconds: 0.5 },
    ...{ burstWhenBatchFull: true, transactional: true },
  };
  await boss.work('deliveries', options, async (batch, transaction) => {
    const jobs = batch.map(({ data }) => data);
    await transaction.executeSql(SETTLE, valuesOf(jobs));
    for (const { event } of jobs) noteSettled(event);
  });
  return ({ reference, event }) => {
    const digest = createHash('sha256').update(event.id).digest('hex');
    const id = digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5');
    return boss.send('deliveries', { reference, event }, { id });
  };
}

async function graphileWorker() {
  process.env.NO_LOG_SUCCESS = '1';
  const { run } = await import('graphile-worker');
  const settle = async (job, { query }) => {
    await query(SETTLE, valuesOf([job]));
    noteSettled(job.event);
  };
  const worker = {
    connectionString: address,
    ...{ concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 } },
    ...{ completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  };
  const { addJob } = await run({ preset: { worker }, taskList: { settle } });
  return (job) => addJob('settle', job, { jobKey: job.event.id });
}

function fail(error) {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
}

const PEERS = { bullmq, 'pg-boss': pgBoss, 'graphile-worker': graphileWorker };
const add = await PEERS[peer]();
const links = new Map(Array.from({ length: Number(count) }, (_, n) => [benchLink(n).token, benchLink(n)]));
// pg-boss returns null for a job that is there already.
const record = async ({ link, event }) => (await add({ reference: link.reference, event })) !== null;
receive({ port: Number(port), links, record });
