import { connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import { listen } from './network.ts';

/** What may stand between settled and PostgreSQL. */

/** Listens in front of the server of a database; returns the address of the database behind what `serve` does. */
async function inFrontOf(url: string, serve: (client: Socket, reach: () => Socket) => void): Promise<string> {
  const to = new URL(url);
  const folder = to.searchParams.get('host');
  const port = Number(to.port || 5432);
  const open = new Set<Socket>();
  const kept = (socket: Socket) => {
    open.add(socket);
    return socket
      .setNoDelay()
      .on('error', () => {})
      .on('close', () => open.delete(socket));
  };
  const reach = () => kept(folder === null ? connect(port, to.hostname) : connect(`${folder}/.s.PGSQL.${port}`));
  const server = createServer((client) => serve(kept(client), reach));
  const at = await listen(server);
  onTestFinished(() => {
    void at.close();
    for (const socket of open) socket.destroy();
  });
  return `postgres://${to.username}@127.0.0.1:${at.port}${to.pathname}`;
}

/** A server that understands something else than it was told: each text is exchanged for another one of its length. */
export function startMisreading(url: string, misread: Readonly<Record<string, string>>): Promise<string> {
  return inFrontOf(url, (client, reach) => {
    const server = reach();
    server.on('data', (data) => client.write(data)).on('close', () => client.destroy());
    client.on('close', () => server.destroy());
    client.on('data', (data) => {
      let text = data.toString('latin1');
      for (const [said, read] of Object.entries(misread)) text = text.replaceAll(said, read.padEnd(said.length));
      server.write(text, 'latin1');
    });
  });
}

const READY = Buffer.from('5a0000000549', 'hex');
/** That it is let in, a key for cancelling, and that it may ask. */
const LET_IN = Buffer.concat([Buffer.from('520000000800000000' + '4b0000000c0000000100000002', 'hex'), READY]);

type Session = {
  socket: Socket;
  /** Of the client that it is lent to. */
  toClient: ((message: Buffer) => void) | null;
  onLost: (() => void) | null;
};

/**
 * A pooler in transaction mode that knows nothing of prepared statements, as pgbouncer before 1.21: the session that was
 * given back last is lent first.
 */
export function startTransactionPooler(url: string): Promise<string> {
  const idle: Session[] = [];
  return inFrontOf(url, (client, reach) => {
    let startup: Buffer | null = null;
    let lent: Session | null = null;
    let unanswered = 0;

    function lend(): Session {
      const session = idle.pop() ?? openSession(reach(), startup as Buffer);
      session.onLost = () => client.destroy();
      session.toClient = (message) => {
        client.write(message);
        if (message[0] !== READY[0] || --unanswered > 0 || message.at(-1) !== READY.at(-1)) return;
        session.toClient = null;
        session.onLost = null;
        lent = null;
        idle.push(session);
      };
      return session;
    }

    client.on(
      'data',
      splitting({ hasType: () => startup !== null }, (message) => {
        if (startup === null) {
          startup = message;
          client.write(LET_IN);
        } else if (message[0] === 0x58) client.end();
        else {
          lent ??= lend();
          if (message[0] === 0x51 || message[0] === 0x53) unanswered++;
          lent.socket.write(message);
        }
      }),
    );
    client.on('close', () => lent?.socket.destroy());
  });
}

/** No client is told what a server says of itself before it is ready. */
function openSession(socket: Socket, startup: Buffer): Session {
  const session: Session = { socket, toClient: null, onLost: null };
  let isReady = false;
  socket.on('close', () => session.onLost?.());
  socket.write(startup);
  const read = (message: Buffer) => {
    if (isReady) session.toClient?.(message);
    else isReady = message[0] === READY[0];
  };
  socket.on('data', splitting({ hasType: () => true }, read));
  return session;
}

/** Cuts what arrives into the messages of the protocol; only the first one of a client has no type. */
function splitting({ hasType }: { hasType: () => boolean }, read: (message: Buffer) => void): (data: Buffer) => void {
  let rest = Buffer.alloc(0);
  return (data) => {
    rest = Buffer.concat([rest, data]);
    for (;;) {
      const typeBytes = hasType() ? 1 : 0;
      if (rest.length < typeBytes + 4) return;
      const end = typeBytes + rest.readUInt32BE(typeBytes);
      if (rest.length < end) return;
      const message = rest.subarray(0, end);
      rest = rest.subarray(end);
      read(message);
    }
  };
}
