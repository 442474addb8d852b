import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { BODY_BYTES_MAX, bodyReader } from '../../src/receive/body.ts';

/** A request of which only the headers have come. */
function requestOf(headers: Record<string, string>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return request;
}

describe('receive: the room for bodies', () => {
  it('is counted by what is announced, and by the largest body where nothing is', () => {
    const bodies = bodyReader();
    expect(bodies.hold(requestOf({ 'content-length': '1000' }), 'others')).toBe(1000);
    expect(bodies.hold(requestOf({ 'transfer-encoding': 'chunked' }), 'others')).toBe(BODY_BYTES_MAX);
  });

  it('ends, comes back with what is released, and one share takes nothing from the other', () => {
    const bodies = bodyReader();
    const largest = requestOf({});
    let held = 0;
    while (bodies.hold(largest, 'others') !== null && held < 10_000) held++;
    expect(held).toBeLessThan(10_000);
    expect(bodies.hold(largest, 'addressed')).toBe(BODY_BYTES_MAX);
    bodies.release(BODY_BYTES_MAX, 'others');
    expect(bodies.hold(largest, 'others')).toBe(BODY_BYTES_MAX);
    expect(bodies.hold(largest, 'others')).toBeNull();
  });
});

describe('receive: a body that is let pass', () => {
  it('ends when it is whole', async () => {
    const request = requestOf({});
    const passed = bodyReader().skip(request);
    request.push('a body');
    request.push(null);
    await passed;
  });

  it('ends when its sender goes', async () => {
    const request = requestOf({});
    const passed = bodyReader().skip(request);
    request.destroy();
    await passed;
  });

  it('has ended when its sender went before', async () => {
    const request = requestOf({});
    await new Promise((resolve) => request.once('close', resolve).destroy());
    await bodyReader().skip(request);
  });

  it('is given up when the process stops', async () => {
    const bodies = bodyReader();
    const passed = bodies.skip(requestOf({}));
    bodies.refuseIncomplete();
    await passed;
  });
});
