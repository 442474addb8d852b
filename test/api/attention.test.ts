import { describe, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { readableLog } from '../support/observe.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { get, orderPath, post, problem } from './client.ts';

const settled = sharedApp();

/** Delivers one event id with another content each time; from the second on that is a matter for a person. */
async function contradict(app: TestApp, reference: string): Promise<() => Promise<void>> {
  const link = await app.reserve(reference);
  let times = 0;
  const again = async () => {
    const body = paymentEvent({ id: `evt_${reference}`, linkId: `pl_${reference}`, status: 'PENDING' });
    expect((await app.deliver(link, `${body}${' '.repeat(times++)}`)).status).toBe(200);
  };
  await again();
  await again();
  return again;
}

async function openMatter(reference: string): Promise<{ id: string; kind: string } | undefined> {
  const { body } = await get(settled(), '/v1/attention');
  return body.attention.find((matter: { reference: string | null }) => matter.reference === reference);
}

describe('api: the list of what needs a person', () => {
  it('ends with the page that holds the last matter, even if that page is full', async () => {
    const app = await startTestApp();
    await contradict(app, 'a');
    await contradict(app, 'b');
    const firstOf = async (limit: number, cursor = '') => (await app.api(`/v1/attention?limit=${limit}${cursor}`)).body;
    const whole = await firstOf(2);
    expect([whole.attention.length, whole.nextCursor]).toEqual([2, null]);
    const first = await firstOf(1);
    const second = await firstOf(1, `&cursor=${first.nextCursor}`);
    // The orders may be settled meanwhile.
    const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
    expect(ids([...first.attention, ...second.attention])).toEqual(ids(whole.attention));
    expect(second.nextCursor).toBeNull();
  });

  it('says since when the oldest matter of any kind has waited', async () => {
    const app = await startTestApp();
    await contradict(app, 'a');
    const link = await app.reserve('b');
    await app.deliver(link, paymentEvent({ linkId: 'pl_b', amount: '60.00' }));
    await eventually(async () => {
      const { summary, groups, attention } = (await app.api('/v1/attention')).body;
      expect(attention.map(({ kind }: { kind: string }) => kind)).toEqual(['hold', 'event_conflict']);
      expect(summary.oldestAt).toBe(attention[1].openedAt);
      expect(groups.map(({ oldestAt }: { oldestAt: string }) => oldestAt)).toEqual(
        attention.map(({ openedAt }: { openedAt: string }) => openedAt),
      );
      expect(attention[0].openedAt > attention[1].openedAt).toBe(true);
    });
  });
});

describe('api: ending a matter that waits for a person', () => {
  it('takes it from the list, and notes the reason in the history of its order', async () => {
    const reference = freshReference();
    await contradict(settled(), reference);
    const { id = '', kind } = (await openMatter(reference)) ?? {};
    expect(kind).toBe('event_conflict');
    const ended = await post(settled(), `/v1/attention/${id}/end`, { reason: 'both say the same' });
    expect([ended.status, ended.body]).toEqual([200, { attention: { id, endedAt: expect.any(String) } }]);
    expect(await openMatter(reference)).toBeUndefined();
    const listed = await get(settled(), `/v1/orders?q=${reference}`);
    expect(listed.body.orders[0].attention).toEqual([]);
    const { body } = await get(settled(), `${orderPath(reference)}/timeline`);
    expect(body.entries).toContainEqual({
      at: ended.body.attention.endedAt,
      kind: 'attention',
      summary: 'a person ended event_conflict',
      details: ['reason given: both say the same'],
      about: null,
    });
  });

  it('is in the log, by the reference of its order', async () => {
    const { log, lines } = readableLog();
    const app = await startTestApp({ log });
    await contradict(app, 'order-1');
    const [{ id }] = (await get(app, '/v1/attention')).body.attention;
    await post(app, `/v1/attention/${id}/end`, { reason: 'both say the same' });
    const ended = { level: 'info', order: 'order-1', kind: 'event_conflict', matter: id, by: 'person' };
    expect(lines).toContainEqual(expect.objectContaining(ended));
    expect(lines).toContainEqual(
      expect.objectContaining({ order: 'order-1', msg: 'an event id came twice with different contents' }),
    );
  });

  it('is not final: what has ended is refused, and what is found again is raised again', async () => {
    const reference = freshReference();
    const again = await contradict(settled(), reference);
    const { id = '' } = (await openMatter(reference)) ?? {};
    await post(settled(), `/v1/attention/${id}/end`, { reason: 'seen' });
    for (const ended of [id, '999999', '0', 'x', '1e3']) {
      const refused = await post(settled(), `/v1/attention/${ended}/end`, { reason: 'seen' });
      expect(problem(refused, 404, 'not_found')).toMatch(RegExp(`id ${ended}: .*A hold has no id: settled orders`));
    }
    await again();
    const after = await openMatter(reference);
    expect(after?.kind).toBe('event_conflict');
    expect(after?.id).not.toBe(id);
  });

  it('needs a reason, and the operator', async () => {
    const reference = freshReference();
    await contradict(settled(), reference);
    const { id = '' } = (await openMatter(reference)) ?? {};
    const path = `/v1/attention/${id}/end`;
    for (const body of [{}, { reason: '' }, { reason: 'x'.repeat(501) }, { reason: 'a', by: 'me' }]) {
      problem(await post(settled(), path, body), 400, 'invalid_request');
    }
    problem(await post(settled(), path, { reason: 'x' }, 'shop'), 403, 'forbidden');
    expect(await openMatter(reference)).toBeDefined();
  });
});
