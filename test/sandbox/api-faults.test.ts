import { describe, expect, it } from 'vitest';
import { startReceiver } from '../support/receiver.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { BARE, create } from './client.ts';

const PROFILE = '/merchant/profile';
const LINKS = '/payment-links';

describe('faults planned for requests', () => {
  it('lose-response before: nothing was created', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'lose-response', match: { method: 'POST' }, with: { when: 'before' } });
    await expect(sandbox.call(LINKS, { body: BARE })).rejects.toThrow('socket hang up');
    expect((await sandbox.call(LINKS)).body.pagination.total).toBe(0);
  });

  it('lose-response after: the link exists, and a retry is 409', async () => {
    const sandbox = await startTestSandbox();
    const body = { ...BARE, externalReference: 'order-1' };
    await plan(sandbox, { fault: 'lose-response', match: { method: 'POST' } });
    await expect(sandbox.call(LINKS, { body })).rejects.toThrow('socket hang up');
    expect((await sandbox.call(`${LINKS}?externalReference=order-1`)).body.pagination.total).toBe(1);
    expect((await sandbox.call(LINKS, { body })).status).toBe(409);
  });

  it('lose-response after: a refusal is lost too', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'lose-response' });
    await expect(sandbox.call(`${LINKS}/unknown`)).rejects.toThrow('socket hang up');
  });

  it('rate-limit: as many 429 as planned, with the planned Retry-After, then none', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'rate-limit', count: 2, with: { retryAfterSeconds: 7 } });
    const answers = [await sandbox.call(PROFILE), await sandbox.call(PROFILE), await sandbox.call(PROFILE)];
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 200]);
    expect(answers.map(({ headers }) => headers.get('retry-after'))).toEqual(['7', '7', null]);
    expect(answers.map(({ headers }) => headers.get('x-ratelimit-remaining'))).toEqual(['0', '0', '57']);
  });

  it('server-error: the planned status, in the shape of an error, and nothing is created', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'server-error', with: { status: 502 } });
    const answer = await sandbox.call(LINKS, { body: BARE });
    expect(answer).toMatchObject({ status: 502, body: { success: false, error: { code: 'server_error' } } });
    expect((await sandbox.call(LINKS)).body.pagination.total).toBe(0);
  });

  it('two bursts planned together follow one another', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'rate-limit', count: 2 });
    await plan(sandbox, { fault: 'server-error', count: 2, with: { status: 503 } });
    const statuses: number[] = [];
    for (let n = 0; n < 5; n++) statuses.push((await sandbox.call(PROFILE)).status);
    expect(statuses).toEqual([429, 429, 503, 503, 200]);
  });

  it('slow: the answer comes this many real milliseconds later, however fast the clock runs', async () => {
    const sandbox = await startTestSandbox({ timeScale: 1_000 });
    await plan(sandbox, { fault: 'slow', with: { ms: 120 } });
    const startMs = performance.now();
    expect((await sandbox.call(PROFILE)).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(115);
  });

  it('early-event: the receiver has its event while the creation is still unanswered', async () => {
    const sandbox = await startTestSandbox();
    const { url, arrived, answer } = await startHoldingReceiver();
    await plan(sandbox, { fault: 'early-event' });
    // Another request does not use it up.
    await sandbox.call(PROFILE);
    let isAnswered = false;
    const creation = sandbox.call(LINKS, { body: { ...BARE, webhookUrl: url } }).then(({ body }) => {
      isAnswered = true;
      return body.paymentLink.id;
    });
    const event = JSON.parse(await arrived);
    expect(event.type).toBe('payment_link.created');
    for (let request = 0; request < 5; request++) await sandbox.call(PROFILE);
    expect(isAnswered).toBe(false);
    answer();
    expect(event.data.paymentLink.id).toBe(await creation);
  });

  it('without early-event the creation does not wait for its receiver', async () => {
    const sandbox = await startTestSandbox();
    const { url, arrived, answer } = await startHoldingReceiver();
    await create(sandbox, { ...BARE, webhookUrl: url });
    await arrived;
    answer();
  });

  it('harms only the method and the path that it names', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, {
      fault: 'server-error',
      count: null,
      match: { method: 'GET', path: '/api/v1/payment-links' },
    });
    expect((await sandbox.call(LINKS, { body: BARE })).status).toBe(201);
    expect((await sandbox.call(PROFILE)).status).toBe(200);
    expect((await sandbox.call(`${LINKS}?page=1`)).status).toBe(503);
    expect((await sandbox.call(LINKS)).status).toBe(503);
  });

  it('is not used up by a request without the key', async () => {
    const sandbox = await startTestSandbox();
    await plan(sandbox, { fault: 'server-error' });
    expect((await sandbox.call(PROFILE, { headers: { 'x-api-key': 'wrong' } })).status).toBe(401);
    expect((await sandbox.call(PROFILE)).status).toBe(503);
  });
});

async function plan(sandbox: TestSandbox, fault: object): Promise<void> {
  expect((await sandbox.control('/faults', { body: fault })).status).toBe(201);
}

/** Takes one delivery, and answers it when told to. */
async function startHoldingReceiver() {
  let answer = () => {};
  const { promise: arrived, resolve } = Promise.withResolvers<string>();
  const { url } = await startReceiver(({ body }, response) => {
    answer = () => void response.end();
    resolve(body.toString());
    return undefined;
  });
  return { url, arrived, answer: () => answer() };
}
