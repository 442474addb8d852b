import type { AddressInfo } from 'node:net';
import express from 'express';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openLog } from '../../src/observe/log.ts';
import { headerNames } from '../../src/paylink/events.ts';
import { bodyReader } from '../../src/receive/body.ts';
import { hooksOf } from '../../src/receive/route.ts';
import type { LinkCredentials } from '../../src/secrets/credentials.ts';
import { systemClock } from '../../src/work/clock.ts';
import { signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { expectSaid, SAID } from './answers.ts';

const LINK: LinkCredentials = {
  linkKey: 1,
  reference: 'order-1',
  token: 'x'.repeat(32),
  secret: 'a-secret-of-at-least-24-bytes',
};
const BODY = '{"id":"evt_1"}';

/** The hook's routes over a store of the test's own. */
async function serveHook(over: { isClosed?: () => boolean; recordDelivery?: () => Promise<never> }) {
  const bodies = bodyReader();
  const outcomes: string[] = [];
  const credentials = {
    cachedByToken: () => LINK,
    cachedByLinkKey: () => LINK,
    cachedByLinkId: () => undefined,
    knows: () => true,
    find: async () => LINK,
    keep: () => {},
    forget: () => {},
    noteLinkId: () => {},
  };
  const { router } = hooksOf({
    bodies,
    credentials,
    onNamed: () => {},
    store: {
      recordDelivery: over.recordDelivery ?? (async () => ({ outcome: 'recorded', eventKey: 1 })),
      recordHint: async () => {},
    },
    rejections: { add: () => {} },
    clock: systemClock,
    log: openLog('silent'),
    headerNames: headerNames('x-service'),
    toleranceSeconds: 300,
    crossOrigin: null,
    isClosed: over.isClosed ?? (() => false),
    onRecorded: () => {},
    onOutcome: ({ outcome }) => outcomes.push(outcome),
    onUnread: () => {},
  });
  const server = express().use(router).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/hooks/${LINK.token}`, bodies, outcomes };
}

describe('receive: while the process stops', () => {
  it('a delivery that comes too late is answered 503 and its connection closed', async () => {
    const { url, outcomes } = await serveHook({ isClosed: () => true });
    const headers = signedHeaders(LINK.secret, BODY);
    await expectSaid(await fetch(url, { method: 'POST', body: BODY, headers }), SAID.stopping);
    expect(outcomes).toEqual(['refused']);
  });

  it('a delivery whose body is not whole is answered 503 when bodies are given up', async () => {
    const { url, bodies, outcomes } = await serveHook({});
    const connection = await rawConnection(url);
    const head = `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\nExpect: 100-continue\r\n\r\n`;
    connection.send(head);
    await connection.continued();
    bodies.refuseIncomplete();
    const { status, headers, body } = await connection.answer();
    expect([status, JSON.parse(body)]).toEqual([503, SAID.stopping.body]);
    expect(headers).toMatchObject(SAID.stopping.headers ?? {});
    expect(outcomes).toEqual(['refused']);
  });

  it('a delivery whose commit is given up is answered 503', async () => {
    const recordDelivery = () => Promise.reject(new Error('given up'));
    const { url, outcomes } = await serveHook({ recordDelivery });
    const headers = signedHeaders(LINK.secret, BODY);
    await expectSaid(await fetch(url, { method: 'POST', body: BODY, headers }), SAID.unavailable);
    expect(outcomes).toEqual(['failed']);
  });
});

describe('receive: a delivery', () => {
  it('is not answered before the store has it on the disk', async () => {
    const { promise: onDisk, resolve: commit } = Promise.withResolvers<never>();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const recordDelivery = () => {
      ask();
      return onDisk;
    };
    const { url } = await serveHook({ recordDelivery });
    let answered = false;
    const answer = fetch(url, { method: 'POST', body: BODY, headers: signedHeaders(LINK.secret, BODY) }).then(
      (response) => {
        answered = true;
        return response;
      },
    );
    await asked;
    // A second, refused delivery travels the same way meanwhile; the first is still open.
    expect((await fetch(url, { method: 'POST', body: BODY })).status).toBe(401);
    expect(answered).toBe(false);
    commit({ outcome: 'recorded', eventKey: 1 } as never);
    await expectSaid(await answer, SAID.recorded);
  });
});
