import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { runSettled } from '../support/process.ts';
import { tamper } from '../support/rows.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, say } from './settled.ts';

/** An order of 100.00 for which 60.00 came. */
async function heldOrder(app: TestApp, reference: string): Promise<void> {
  const link = await app.reserve(reference);
  await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '60.00' }));
}

/** An order with an event that names another link. */
async function mismatched(app: TestApp, reference: string): Promise<void> {
  const link = await app.reserve(reference);
  await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, status: 'PENDING', id: `evt_of_${reference}` }));
  await app.deliver(link, paymentEvent({ linkId: 'pl_of_another', amount: '100.00' }));
}

describe('cli: what needs a person', () => {
  it('attention lists what needs a person: money first, and counts each kind', async () => {
    const app = await startTestApp();
    for (const reference of ['a', 'b', 'c', 'd']) await heldOrder(app, reference);
    await mismatched(app, 'e');
    await eventually(async () => {
      const { text, data } = await say(['attention'], environmentOf(app));
      expect(text).toMatch(
        /^5 matters need attention; the oldest has waited \S+ \w+\. Money: 4 orders with a balance of 240\.00 BRL\.$/m,
      );
      const groups = /^hold: amount_mismatch +4 +2\S+Z +400\.00 BRL +240\.00 BRL .*\nlink_mismatch +1 /m;
      expect(text).toMatch(groups);
      expect(text).toMatch(/^\d+ +2\S+Z +link_mismatch +e +100\.00 BRL +- +1 /m);
      const kinds = data.attention.map(({ kind }: { kind: string }) => kind);
      expect(kinds).toEqual(['hold', 'hold', 'hold', 'hold', 'link_mismatch']);
    });
    const each = await say(['attention', '--kind', 'hold'], environmentOf(app));
    expect(each.data.attention.map(({ reference }: { reference: string }) => reference)).toEqual(['a', 'b', 'c', 'd']);
    expect(each.text).toMatch(
      /^- +2\S+Z +hold: amount_mismatch +a +100\.00 BRL +60\.00 BRL +1 +Order a .*settled orders resolve a --accept --reason TEXT\. To cancel .*resolve a --reject --reason TEXT$/m,
    );
    const few = await say(['attention', '--limit', '2'], environmentOf(app));
    expect([few.data.attention.length, few.data.more]).toEqual([2, true]);
    const ofState = await say(['attention', '--state', 'paid'], environmentOf(app));
    expect(ofState.text).toBe('Nothing matches these filters.\n');
  });

  it('attention says that nothing needs a person if that is so, and --exit-code ends with 3 otherwise', async () => {
    const app = await startTestApp();
    const args = ['attention', '--exit-code'];
    const nothing = await runSettled(args, environmentOf(app));
    expect(nothing).toMatchObject({ code: 0, stdout: 'Nothing needs attention.\n' });
    await heldOrder(app, 'a');
    await eventually(async () => {
      expect((await runSettled(args, environmentOf(app))).code).toBe(EXIT.needsPerson);
    });
    expect((await runSettled(['attention'], environmentOf(app))).code).toBe(0);
    // Whatever it lists.
    await heldOrder(app, 'b');
    await eventually(async () => expect((await app.order('b')).state).toBe('held'));
    for (const narrowed of [['--limit', '1'], ['--all'], ['--kind', 'hold'], ['--state', 'held', '--limit', '1']]) {
      expect((await runSettled([...args, ...narrowed], environmentOf(app))).code).toBe(EXIT.needsPerson);
    }
    expect((await runSettled([...args, '--state', 'paid'], environmentOf(app))).code).toBe(0);
    const accept = { decision: 'accept', reason: 'seen' };
    for (const reference of ['a', 'b']) await app.api(`/v1/orders/${reference}/resolve`, { body: accept });
    expect((await runSettled(args, environmentOf(app))).code).toBe(0);
    const { text } = await say(['orders', 'list'], environmentOf(app));
    expect(text).toMatch(/^a +paid +100\.00 BRL +60\.00 BRL +2\S+Z +2\S+Z +underpaid$/m);
  });

  it('attention does not say that none of it is about money while an event of a payment is not settled', async () => {
    const app = await startTestApp();
    await mismatched(app, 'a');
    await eventually(async () => {
      const { text } = await say(['attention'], environmentOf(app));
      expect(text).toMatch(/^1 matter needs attention; .*\. Events that were not settled may be about money\.$/m);
    });
  });

  it('attention lists the kinds that it knows if a later version wrote another', async () => {
    const app = await startTestApp({ engine: 'sqlite' });
    await mismatched(app, 'a');
    await eventually(async () => {
      expect((await say(['attention'], environmentOf(app))).data.attention).toHaveLength(1);
    });
    tamper(
      app.storePath,
      `INSERT INTO attention (kind, subject, detail, opened_at_ms, last_at_ms) VALUES ('of_a_later_version', 'x', '', 1, 1)`,
    );
    const { text, data } = await say(['attention'], environmentOf(app));
    expect(data.attention).toHaveLength(2);
    expect(text).toMatch(/^2 matters need attention/);
    expect(text).toMatch(/^of_a_later_version +1 /m);
    expect(text).toMatch(
      /^\d+ +1970\S+ +(of_a_later_version) +- .* A later version of settled raised this matter: \1\.$/m,
    );
  });

  it('attention lists the first ten, of a kind or a state if that is asked for, and says that there are more', async () => {
    const app = await startTestApp();
    for (let n = 1; n <= 11; n++) await mismatched(app, `order-${n}`);
    await heldOrder(app, 'held');
    await eventually(async () => {
      const { text, data } = await say(['attention'], environmentOf(app));
      expect(data.groups.map(({ count }: { count: number }) => count)).toEqual([1, 11]);
      expect([data.attention.length, data.attention[0].reference, data.more]).toEqual([10, 'held', true]);
      expect(text).toMatch(/^There are more: give --limit N or --all\.$/m);
    });
    const { data } = await say(['attention', '--kind', 'link_mismatch'], environmentOf(app));
    expect([data.attention.length, data.more]).toEqual([11, false]);
    const held = await say(['attention', '--state', 'held'], environmentOf(app));
    expect(held.data.attention.map(({ reference }: { reference: string }) => reference)).toEqual(['held']);
  });

  it('orders list says what was asked and captured, why an order is held, and what else needs a person', async () => {
    const app = await startTestApp();
    await heldOrder(app, 'a');
    await mismatched(app, 'b');
    await eventually(async () => {
      const { text } = await say(['orders', 'list'], environmentOf(app));
      expect(text).toMatch(/^b +payment_pending +100\.00 BRL +- +2\S+Z +- +link_mismatch$/m);
      expect(text).toMatch(/^a +held: amount_mismatch +100\.00 BRL +60\.00 BRL +2\S+Z +-/m);
    });
    const { data } = await say(['orders', 'list', '--since', '1m', '--until', '1m'], environmentOf(app));
    expect(data.orders).toEqual([]);
  });
});
