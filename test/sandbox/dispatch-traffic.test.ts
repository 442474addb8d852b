import { describe, expect, it, onTestFinished } from 'vitest';
import { createLink, firstDelivery, MINUTE_MS, offsetsMs, startPair, turn } from '../support/sandbox.ts';
import { eventually } from '../support/timing.ts';

/** What the attempts themselves take, in milliseconds. */
const SLACK_MS = 5_000;

describe('sandbox: traffic that never ends', () => {
  /** Every delivery is answered only after the next link was created: there is always one on its way. */
  async function startTraffic(status: number) {
    const { sandbox, receiver } = await startPair();
    let isOn = true;
    const links: { id: string }[] = [];
    const next = async () => {
      if (isOn) links.push(await createLink(sandbox, { webhookUrl: `${receiver.url}/${links.length}` }));
    };
    const known = new Set<string>();
    receiver.answerWith(({ event }, response) => {
      const isNew = !known.has(event.id);
      known.add(event.id);
      void (isNew ? next() : Promise.resolve())
        // The end of the test breaks off the creation that is on its way.
        .catch((error: unknown) => {
          if (isOn) throw error;
        })
        .then(() => response.writeHead(status).end());
      return undefined;
    });
    await next();
    const end = () => {
      isOn = false;
    };
    onTestFinished(end);
    return { sandbox, receiver, links, end };
  }

  it('does not delay a caller that waits for the deliveries that exist already', async () => {
    const { sandbox, receiver, links } = await startTraffic(204);
    await sandbox.idle();
    expect(await firstDelivery(sandbox, links[0] as { id: string })).toMatchObject({ attempts: 1 });
    const before = receiver.received.length;
    await eventually(() => expect(receiver.received.length).toBeGreaterThan(before));
  });

  it('does not delay a turn of the clock, which does not change it while it is in flight', async () => {
    const { sandbox, links, end } = await startTraffic(503);
    await sandbox.clock.advance(2 * MINUTE_MS);
    end();
    await turn(sandbox, 2 * MINUTE_MS);
    expect(links.length).toBeGreaterThan(1);
    for (const link of links) {
      const [, retryMs] = offsetsMs(await firstDelivery(sandbox, link));
      expect([(retryMs as number) >= MINUTE_MS, (retryMs as number) < MINUTE_MS + SLACK_MS]).toEqual([true, true]);
    }
  });
});
