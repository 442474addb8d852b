import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { runIn } from '../store/postgres/contract_store.ts';
import { connectTo, newDatabase, sharedServer } from '../store/postgres/opening.ts';
import { testFolder } from '../support/app.ts';
import { listen } from '../support/network.ts';
import { runSettled, spawnSettled } from '../support/process.ts';
import { shutDatabase } from '../support/test_database.ts';

const SHARED = {
  SETTLED_SECRETS_KEY: Buffer.alloc(32, 1).toString('base64'),
  SETTLED_OPERATOR_TOKEN: 'the-operators-token-1',
};

/** What `settled migrate` says of an address that cannot be used, and how it ends. Never its password. */
async function migrating(SETTLED_STORE: string, environment: Record<string, string> = {}) {
  // A process, because the library that connects reads the process's environment.
  const given = { SETTLED_STORE, ...SHARED, ...environment };
  const { code, stdout, stderr } = await spawnSettled(['migrate'], given).finished;
  expect([stdout, stderr.trim().split('\n').length]).toEqual(['', 1]);
  expect(stderr).not.toContain('canary');
  return { code, said: stderr };
}

/** Answers every connection, after the request for TLS that some begin with. */
async function answering(answer: (socket: Socket, first: Buffer) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (first) => answer(socket, first));
  });
  const { port, close } = await listen(server);
  onTestFinished(() => void close());
  return `postgres://settled:canary@localhost:${port}/settled`;
}

/** An error as the server sends it before a connection is established. */
function fatal(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.from('E....');
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** What a server that wants a password sends, one after each message. */
const ASKS_FOR_A_PASSWORD = [
  Buffer.from('R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0'),
  Buffer.from('R\0\0\0\x1b\0\0\0\x0br=one,s=b25l,i=4096'),
];

describe('cli: an address of a database that cannot be used', () => {
  it('is refused with a wrong port, in the address or next to it', async () => {
    const beside = await migrating('postgres://settled:canary@127.0.0.1/settled', { PGPORT: '99999' });
    expect(beside.code).toBe(EXIT.configuration);
    expect(beside.said).toContain('PGPORT is no port');
  });

  it('is said to recover alone only while settled serves', async () => {
    const SETTLED_STORE = await newDatabase();
    const serving = spawnSettled(['serve'], {
      ...SHARED,
      SETTLED_STORE,
      SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
      SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    });
    await serving.line(/settled is serving/);
    await shutDatabase(SETTLED_STORE);
    const ended = await migrating(SETTLED_STORE);
    expect(ended.code).toBe(EXIT.unreachable);
    expect(ended.said).not.toContain('by itself');

    expect(await serving.line(/the store cannot be written/)).toContain('answered 503 until it can');
  });

  it('is not migrated if the direct address leads to another database', async () => {
    const [store, other] = [await newDatabase(), `other_${randomUUID()}`];
    const direct = await sharedServer().create(other);
    onTestFinished(() => sharedServer().drop(other));
    const { code, stderr } = await runSettled(['migrate'], {
      ...SHARED,
      SETTLED_STORE: store,
      SETTLED_STORE_DIRECT: direct,
    });
    expect([code, stderr]).toEqual([
      EXIT.configuration,
      expect.stringContaining('SETTLED_STORE_DIRECT leads to another database'),
    ]);
    const client = await connectTo(direct);
    const tables = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'");
    expect(tables.rows).toEqual([]);
  });

  it('is refused with the parameter that the server rejects', async () => {
    const refused = await migrating(`${await newDatabase()}&options=-c%20nosuch%3D1`);
    expect(refused.code).toBe(EXIT.configuration);
    expect(refused.said).toMatch(/refuses settled \(unrecognized configuration parameter "nosuch"\)\. Check `options`/);
  });

  it('is refused if its role may not connect, or has no connection left', async () => {
    const role = `role_${randomUUID().replaceAll('-', '')}`;
    const url = new URL(await newDatabase());
    const database = url.pathname.slice(1);
    url.username = role;
    const server = sharedServer().url('postgres');
    await runIn(server, `CREATE ROLE ${role} LOGIN; REVOKE CONNECT ON DATABASE "${database}" FROM PUBLIC`);
    onTestFinished(() => runIn(server, `DROP OWNED BY ${role}; DROP ROLE ${role}`));
    const refused = await migrating(url.href);
    expect(refused.code).toBe(EXIT.configuration);
    expect(refused.said).toMatch(/permission denied for database .* \(GRANT CONNECT ON DATABASE\)/);
    await runIn(server, `GRANT CONNECT ON DATABASE "${database}" TO ${role}; ALTER ROLE ${role} CONNECTION LIMIT 0`);
    const full = await migrating(url.href);
    expect(full.code).toBe(EXIT.tryAgain);
    expect(full.said).toMatch(/too many connections for role .* Raise max_connections .* see Sizing/);
  });

  it.each([
    ['wants a password', ASKS_FOR_A_PASSWORD, /the address has no password\)\. Check the user, the password/],
    [
      'lets in only what is encrypted',
      [fatal('28000', 'no pg_hba.conf entry for host "::1", user "u", database "d", no encryption')],
      /no encryption\)\. Check sslmode, .* pg_hba\.conf/,
    ],
  ])('is refused if the server %s', async (_what, answers, said) => {
    const url = await answering((socket) => {
      const left = [...answers];
      const next = () => socket.write(left.shift() ?? '');
      socket.on('data', next);
      next();
    });
    const refused = await migrating(url.replace(':canary', ''));
    expect(refused.code).toBe(EXIT.configuration);
    expect(refused.said).toMatch(said);
  });
});

describe('cli: a database behind TLS', () => {
  /** A certificate of an unknown authority, for another name than `localhost`, and its key. */
  function certificate() {
    const folder = testFolder();
    const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
    const request = 'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=elsewhere';
    const [program = '', ...args] = [...request.split(' '), '-keyout', key, '-out', cert];
    execFileSync(program, args, { stdio: 'ignore' });
    return { key, cert };
  }

  it('whose certificate is not trusted is not taken for one that does not answer', async () => {
    const { key, cert } = certificate();
    const identity = { key: readFileSync(key), cert: readFileSync(cert) };
    const url = await answering((socket) => {
      socket.write('S');
      new TLSSocket(socket, { isServer: true, ...identity }).on('error', () => {});
    });
    const [unknown, misnamed] = await Promise.all([
      migrating(`${url}?sslmode=verify-full`),
      migrating(`${url}?sslrootcert=${cert}`),
    ]);
    expect([unknown.code, misnamed.code]).toEqual([EXIT.configuration, EXIT.configuration]);
    expect(unknown.said).toMatch(/not trusted \(self-signed certificate\)\. Check sslmode, sslrootcert and/);
    expect(misnamed.said).toMatch(/not trusted \(.*altnames.*\)\. Check sslmode, sslrootcert and the host's name/i);
  });

  it('is distinguished from one that offers none', async () => {
    const plain = await migrating(`${await answering((socket) => void socket.write('N'))}?sslmode=no-verify`);
    expect(plain.code).toBe(EXIT.configuration);
    expect(plain.said).toContain('offers no TLS. Set ssl = on at the server; or sslmode=disable');
  });

  it('is not connected to with files that cannot be read', async () => {
    const other = join(testFolder(), 'other.pem');
    writeFileSync(other, 'no PEM');
    const url = 'postgres://settled:canary@127.0.0.1:1/settled';
    const [folder, garbage] = await Promise.all([
      migrating(`${url}?sslrootcert=/etc`),
      migrating(`${url}?sslcert=${certificate().cert}&sslkey=${other}`),
    ]);
    expect([folder.code, garbage.code]).toEqual([EXIT.configuration, EXIT.configuration]);
    expect(folder.said).toContain('sslrootcert in SETTLED_STORE names /etc, which cannot be read (EISDIR)');
    expect(garbage.said).toContain(`sslkey in SETTLED_STORE names ${other}, which is no private key`);
  });
});
