import { connect, type Socket } from 'node:net';

/** Attacks a listener, as the child process of prove/flood.ts. Arguments: the attack, and the port. */

export type AttackPlan = {
  about: string;
  /** The private listener is attacked; otherwise the public one. */
  isPrivate?: true;
  connections: number;
  begin: (socket: Socket, n: number) => void;
};

const unknown = (n: number) => `x${String(n).padStart(31, '0')}`;
const post = (n: number, lines: string) => `POST /hooks/${unknown(n)} HTTP/1.1\r\nHost: x\r\n${lines}\r\n`;
const PIPELINED_BYTES = 105_000_000;

/** Sends this many bytes of requests, one after the other, without waiting for answers. */
function pipeline(bytes: number, one: (n: number) => string): AttackPlan['begin'] {
  return (socket, n) => {
    const request = one(n);
    const block = Buffer.from(request.repeat(Math.ceil(65_536 / request.length)));
    let left = bytes;
    const send = () => {
      while (left > 0) {
        const piece = block.subarray(0, left);
        left -= piece.length;
        sent.bytes += piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.on('drain', send);
    send();
  };
}

/** Sends a little every second, so that the connection is never idle. */
function dribble(head: (n: number) => string, more: string): AttackPlan['begin'] {
  return (socket, n) => {
    socket.write(head(n));
    const timer = setInterval(() => socket.write(more), 1_000);
    socket.once('close', () => clearInterval(timer));
  };
}

const garbage = (n: number) => `${post(n, 'Content-Length: 3\r\n')}abc`;
const nothing = () => 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const unsigned = () => 'GET /v1/orders HTTP/1.1\r\nHost: x\r\n\r\n';
const tiny = (n: number) => `${post(n, 'Transfer-Encoding: chunked\r\n')}${'1\r\nx\r\n'.repeat(200_000)}`;

export const ATTACKS = {
  pipelined: {
    about: '1 500 connections that pipeline 105 MB',
    connections: 1_500,
    begin: pipeline(PIPELINED_BYTES / 1_500, garbage),
  },
  'pipelined-few': {
    about: '40 connections that pipeline 105 MB',
    connections: 40,
    begin: pipeline(PIPELINED_BYTES / 40, garbage),
  },
  'pipelined-small': {
    about: '1 500 connections that pipeline 105 MB of what is answered at once',
    connections: 1_500,
    begin: pipeline(PIPELINED_BYTES / 1_500, nothing),
  },
  idle: { about: '4 200 idle connections', connections: 4_200, begin: () => {} },
  'idle-answered': {
    about: '4 200 idle connections that were answered once',
    connections: 4_200,
    begin: (socket) => void socket.write(nothing()),
  },
  'slow-headers': {
    about: '4 200 connections with slow headers',
    connections: 4_200,
    begin: dribble((n) => `POST /hooks/${unknown(n)} HTTP/1.1\r\nHost: x\r\n`, 'X-Note: more\r\n'),
  },
  'slow-bodies': {
    about: '4 200 connections with slow bodies',
    connections: 4_200,
    begin: dribble((n) => post(n, 'Content-Length: 100000\r\n'), 'x'),
  },
  'tiny-pieces': {
    about: '200 connections with bodies in pieces of one byte',
    connections: 200,
    begin: (socket, n) => void socket.write(tiny(n)),
  },
  chunked: {
    about: '600 connections with bodies in pieces, beside deliveries in chunks',
    connections: 600,
    begin: (socket, n) => void socket.write(tiny(n)),
  },
  'private-pipelined': {
    about: '400 connections that pipeline 800 requests without a token, again and again, on the private listener',
    isPrivate: true,
    connections: 400,
    begin: pipeline(PIPELINED_BYTES / 400, unsigned),
  },
  'private-idle': {
    about: '2 300 idle connections on the private listener',
    isPrivate: true,
    connections: 2_300,
    begin: () => {},
  },
  'private-slow': {
    about: '2 300 connections with slow headers on the private listener',
    isPrivate: true,
    connections: 2_300,
    begin: dribble(() => 'GET /v1/orders HTTP/1.1\r\nHost: x\r\n', 'X-Note: more\r\n'),
  },
} as const satisfies Record<string, AttackPlan>;
export type Attack = keyof typeof ATTACKS;

const sent = { bytes: 0, connected: 0, closed: 0 };

/** Opens the attack's connections, and reopens closed ones until all bytes of a pipeline are sent. */
function flood({ connections, begin }: AttackPlan, port: number): void {
  const open = (n: number) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('error', () => {});
    socket.once('connect', () => {
      sent.connected++;
      begin(socket, n);
    });
    socket.resume();
    socket.once('close', () => {
      sent.closed++;
      if (sent.bytes < PIPELINED_BYTES) setTimeout(() => open(n), 50);
    });
  };
  for (let n = 0; n < connections; n++) open(n);
}

const [attack = '', port] = process.argv.slice(2);
if (process.argv[1] === import.meta.filename && Object.hasOwn(ATTACKS, attack)) {
  process.on('message', () => process.send?.(sent));
  process.once('disconnect', () => process.exit());
  flood(ATTACKS[attack as Attack], Number(port));
}
