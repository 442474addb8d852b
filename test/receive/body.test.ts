import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { BODY_BYTES_MAX, type BodyReader, bodyReader, type Share } from '../../src/receive/body.ts';

/** A request of which only the headers have come. */
function requestOf(headers: Record<string, string>): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  Object.assign(request.headers, headers);
  return request;
}

/** Waits until what was pushed has come to its reader. */
const arrived = () => new Promise((resolve) => setImmediate(resolve));

/** Reads a body of so many bytes of which the last one does not come. */
async function readAllButTheEnd(bodies: BodyReader, share: Share, bytes = BODY_BYTES_MAX) {
  const request = requestOf({ 'content-length': String(bytes) });
  const read = bodies.read(request, share);
  request.push(Buffer.alloc(bytes - 1));
  await arrived();
  const finish = () => {
    request.push(Buffer.alloc(1));
    request.push(null);
    return read;
  };
  return { request, finish };
}

/** Fills a share with bodies on their way; how many there are room for. */
async function fill(bodies: BodyReader, share: Share) {
  const reading: Awaited<ReturnType<typeof readAllButTheEnd>>[] = [];
  for (let n = 0; n < ROOM_FOR[share]; n++) reading.push(await readAllButTheEnd(bodies, share));
  return reading;
}

const ROOM_FOR = { addressed: 256, others: 64 };

describe('receive: a body', () => {
  it.each([
    ['no piece', []],
    ['one piece', ['a body']],
    ['many pieces', ['a', ' body', ' of', ' many, many, many', ' pieces', '', '.']],
  ])('of %s is read whole', async (_name, pieces) => {
    const request = requestOf({ 'transfer-encoding': 'chunked' });
    const read = bodyReader().read(request, 'others');
    for (const piece of pieces) request.push(piece);
    request.push(null);
    expect(await read).toMatchObject({ outcome: 'read', body: Buffer.from(pieces.join('')) });
  });

  it('that names no link and is on its way for longest makes room when there are too many of them', async () => {
    const bodies = bodyReader();
    const headers = { 'content-length': '2' };
    const named = bodies.read(requestOf(headers), 'addressed');
    const reading = Array.from({ length: 513 }, () => {
      const request = requestOf(headers);
      return { request, read: bodies.read(request, 'others') };
    });
    const [longest, ...others] = reading;
    expect(await longest?.read).toEqual({ outcome: 'crowded_out' });
    for (const { request } of others) request.push('{}');
    for (const { request } of others) request.push(null);
    const outcomes = await Promise.all(others.map(async ({ read }) => (await read).outcome));
    expect(new Set(outcomes)).toEqual(new Set(['read']));
    bodies.refuseIncomplete();
    expect(await named).toEqual({ outcome: 'refused' });
  });

  it('in pieces of one byte takes room for what each piece costs', async () => {
    const bodies = bodyReader();
    const request = requestOf({ 'transfer-encoding': 'chunked' });
    const reading = bodies.read(request, 'others');
    for (let n = 0; n < 1064; n++) {
      request.push(Buffer.from([n]));
      await arrived();
    }
    request.push(null);
    const read = await reading;
    if (read.outcome !== 'read') throw new Error(`the body was ${read.outcome}`);
    expect(read.body).toEqual(Buffer.from(Array.from({ length: 1064 }, (_, n) => n)));
    expect(read.room).toEqual({ share: 'others', bytes: 1064 + 1000 * 256 });
  });

  it('of the largest size is read, and of a byte more is not', async () => {
    const bodies = bodyReader();
    const { finish } = await readAllButTheEnd(bodies, 'others');
    expect(await finish()).toMatchObject({ outcome: 'read', room: { bytes: BODY_BYTES_MAX } });
    const request = requestOf({ 'transfer-encoding': 'chunked' });
    const read = bodies.read(request, 'others');
    request.push(Buffer.alloc(BODY_BYTES_MAX));
    request.push(Buffer.alloc(1));
    expect(await read).toEqual({ outcome: 'too_large' });
  });

  it.each([
    ['just before', async () => {}],
    ['long before', arrived],
  ])('whose sender goes %s it is read is given up', async (_when, later) => {
    const request = requestOf({ 'content-length': '10' });
    const gone = new Promise((resolve) => request.once('close', resolve));
    request.push('half');
    request.destroy();
    await later();
    const read = bodyReader().read(request, 'others');
    await gone;
    expect(await read).toEqual({ outcome: 'aborted' });
  });

  it('is refused while it comes, when the process stops', async () => {
    const bodies = bodyReader();
    const read = bodies.read(requestOf({}), 'others');
    bodies.refuseIncomplete();
    expect(await read).toEqual({ outcome: 'refused' });
  });
});

describe('receive: the room for bodies', () => {
  it('is not taken by what is only announced', async () => {
    const bodies = bodyReader();
    for (let n = 0; n < 1000; n++) {
      void bodies.read(requestOf({ 'content-length': String(BODY_BYTES_MAX) }), 'others');
      const dribbling = requestOf({ 'transfer-encoding': 'chunked' });
      void bodies.read(dribbling, 'others');
      dribbling.push('x');
    }
    await arrived();
    const { finish } = await readAllButTheEnd(bodies, 'others');
    expect(await finish()).toMatchObject({ outcome: 'read' });
  });

  it.each<[Share, Share]>([
    ['others', 'addressed'],
    ['addressed', 'others'],
  ])('of %s ends, and takes nothing from the share of %s', async (share, other) => {
    const bodies = bodyReader();
    await fill(bodies, share);
    const [late, elsewhere] = [requestOf({}), requestOf({})];
    const reading = [bodies.read(late, share), bodies.read(elsewhere, other)];
    for (const request of [late, elsewhere]) {
      request.push(Buffer.alloc(1000));
      request.push(null);
    }
    expect(await Promise.all(reading)).toMatchObject([{ outcome: 'no_room' }, { outcome: 'read' }]);
  });

  it.each<[string, (reading: { request: IncomingMessage }, bodies: BodyReader) => unknown]>([
    ['a sender goes', ({ request }) => request.destroy()],
    ['the process stops', (_reading, bodies) => bodies.refuseIncomplete()],
  ])('comes back when %s', async (_why, happens) => {
    const bodies = bodyReader();
    const [first] = await fill(bodies, 'others');
    happens(first as { request: IncomingMessage }, bodies);
    await arrived();
    const { finish } = await readAllButTheEnd(bodies, 'others');
    expect(await finish()).toMatchObject({ outcome: 'read' });
  });

  it('comes back when a body turns out too large', async () => {
    const bodies = bodyReader();
    for (let n = 0; n < 2 * ROOM_FOR.others; n++) {
      const request = requestOf({});
      const read = bodies.read(request, 'others');
      request.push(Buffer.alloc(BODY_BYTES_MAX));
      request.push(Buffer.alloc(1));
      expect(await read).toEqual({ outcome: 'too_large' });
    }
  });

  it('of a whole body is taken until it is given back', async () => {
    const bodies = bodyReader();
    const reading = await fill(bodies, 'others');
    const [read] = await Promise.all(reading.map(({ finish }) => finish()));
    const again = async () => (await (await readAllButTheEnd(bodies, 'others')).finish()).outcome;
    expect(await again()).toBe('no_room');
    if (read?.outcome === 'read') bodies.giveBack(read.room);
    expect([await again(), await again()]).toEqual(['read', 'no_room']);
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
