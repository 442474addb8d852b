import { describe, expect, it } from 'vitest';
import { signedHeaders } from '../support/deliveries.ts';
import { rawConnection } from '../support/http.ts';
import { expectSaid, SAID } from './answers.ts';
import { LINK, serveHook } from './serve_hook.ts';

const BODY = '{"id":"evt_1"}';

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
