import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SMTPServer } from 'smtp-server';

export type Mail = { id: string; text: string };

/** A real mail server with TLS from the first byte, which hands on what it takes, and can be down. */
export async function openMailServer(folder: string, onMail: (mail: Mail) => void) {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert];
  execFileSync('openssl', [...made.split(' '), ...names], { stdio: 'ignore' });
  let isDown = false;
  const server = new SMTPServer({
    secure: true,
    key: readFileSync(key),
    cert: readFileSync(cert),
    logger: false,
    onConnect: (_session, done) => done(isDown ? new Error('421 down') : null),
    onAuth: (_auth, _session, done) => done(null, { user: 'settled' }),
    onData: (stream, _session, done) => {
      stream.toArray().then((chunks) => {
        onMail(read(Buffer.concat(chunks).toString()));
        setTimeout(() => done(null, 'queued'), 30);
      });
    },
  });
  server.on('error', () => {});
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => resolve((listening.address() as { port: number }).port));
  });
  return {
    environment: {
      SETTLED_ALERT_SMTP: `smtps://settled:password@localhost:${port}`,
      SETTLED_ALERT_FROM: 'settled@shop.example',
      SETTLED_ALERT_TO: 'ana@shop.example',
      NODE_EXTRA_CA_CERTS: cert,
    },
    setDown: (down: boolean) => {
      isDown = down;
    },
    close: () => new Promise<void>((closed) => server.close(() => closed())),
  };
}

/** Lines that belong together come as one. */
function read(raw: string): Mail {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const id = /^message-id: *<([^@>]+)@/im.exec(head)?.[1] ?? '';
  const text = rest
    .join('\n\n')
    .replaceAll('\r\n', '\n')
    .replace(/=\n/g, '')
    .replace(/\n {2}/g, ' ');
  return { id, text };
}
