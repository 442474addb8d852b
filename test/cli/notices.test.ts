import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { startTestApp } from '../support/app.ts';
import { startCallback } from '../support/callback.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { eventually } from '../support/eventually.ts';
import { environmentOf, say } from './settled.ts';

async function startPaid(environment: Record<string, string>, references: readonly string[]) {
  const app = await startTestApp({ environment });
  for (const reference of references) {
    const link = await app.reserve(reference);
    await app.deliver(link, paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' }));
  }
  await eventually(async () => expect((await app.api('/v1/notices')).body.notices).toHaveLength(references.length));
  return app;
}

describe('cli: notices list', () => {
  it('says of notices that nobody sends that they are for the feed only', async () => {
    const app = await startPaid({}, ['a']);
    const { text, data } = await say(['notices', 'list'], environmentOf(app));
    expect(text).toMatch(/^msg_1_\S+ .* a +order\.paid +pending +0 +- +feed only$/m);
    expect(text).toMatch(/^Nothing is sent: SETTLED_SHOP_URL is not set\..*feed only/m);
    expect(data).toMatchObject({ shop: null, notices: [{ dueAt: null }] });
  });

  it('says where notices are sent, without what may be secret, and agrees with the doctor', async () => {
    const callback = await startCallback();
    callback.answerWith(401);
    const { environment } = callback;
    const url = new URL(callback.url).origin;
    const SETTLED_SHOP_URL = `${callback.url}/hidden-in-the-path?key=hidden-in-the-query`;
    const app = await startPaid({ ...environment, SETTLED_SHOP_URL }, ['a', 'b', 'c']);
    await eventually(async () =>
      expect((await app.api('/v1/notices')).body.shop.failures?.attempts).toBeGreaterThanOrEqual(3),
    );
    const { text, data } = await say(['notices', 'list'], environmentOf(app));
    const lines = text.trimEnd().split('\n');
    expect(lines.at(-2)).toBe(`They are sent to ${url}`);
    expect(lines.at(-1)).toMatch(
      /^The shop takes none: \d+ attempts in a row failed since 2\S+Z\. What to do: settled doctor$/,
    );
    expect(data.shop).toMatchObject({ url, failures: { fault: { code: 'shop_refused' } } });
    expect(JSON.stringify(data)).not.toContain('hidden-in');
    const doctor = await say(['doctor'], environmentOf(app), EXIT.refused);
    expect(doctor.text).toMatch(/^failing +shop +the shop takes no notices: \d+ attempts in a row failed/m);
  });
});
