import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { SMTPServer } from 'smtp-server';
import { onTestFinished } from 'vitest';
import { testFolder } from './app.ts';

type Mail = { from: string; to: string[]; headers: Readonly<Record<string, string>>; text: string };

export type MailServer = {
  port: number;
  /** settled's settings for it. */
  environment: Record<string, string>;
  /** What it took, oldest first. */
  mails: Mail[];
  /** Its answer to the next mails: undefined to take them. */
  refuseWith(refusal: string | undefined): void;
};

const [USER, PASSWORD] = ['settled', 'p@ss/word'];

/**
 * A real mail server with TLS, from its first byte or by STARTTLS. `trusted`: whether this process trusts its certificate;
 * `unknown`: who is refused; `host`: how settled names it.
 */
export async function startMailServer({
  secure = false,
  trusted = true,
  unknown = '',
  host = 'localhost',
} = {}): Promise<MailServer> {
  const { key, cert } = newCertificate(host);
  if (trusted) setDefaultCACertificates([...getCACertificates('default'), cert.toString()]);
  const mails: Mail[] = [];
  let refusal: string | undefined;
  const server = new SMTPServer({
    secure,
    key,
    cert,
    logger: false,
    onAuth: ({ username, password }, _session, done) => {
      const isKnown = username === USER && password === PASSWORD;
      done(isKnown ? null : new Error('535 5.7.8 Error: authentication failed'), isKnown ? { user: USER } : undefined);
    },
    onRcptTo: ({ address }, _session, done) =>
      done(address === unknown ? Object.assign(new Error('5.1.1 who?'), { responseCode: 550 }) : null),
    onData: (stream, session, done) => {
      stream.toArray().then((chunks) => {
        if (refusal !== undefined) return done(Object.assign(new Error(refusal), { responseCode: 451 }));
        const { mailFrom, rcptTo } = session.envelope;
        const from = mailFrom === false ? '' : mailFrom.address;
        mails.push({ from, to: rcptTo.map(({ address }) => address), ...parsed(Buffer.concat(chunks).toString()) });
        done(null, `queued as ${mails.length}`);
      });
    },
  });
  server.on('error', () => {});
  const port = await new Promise<number>((resolve) => {
    const listening = server.listen(0, '127.0.0.1', () => resolve((listening.address() as { port: number }).port));
  });
  onTestFinished(() => new Promise<void>((closed) => server.close(() => closed())));
  const user = `${USER}:${encodeURIComponent(PASSWORD)}`;
  return {
    port,
    environment: {
      SETTLED_ALERT_SMTP: `${secure ? 'smtps' : 'smtp'}://${user}@${host}:${port}`,
      SETTLED_ALERT_FROM: 'settled@shop.example',
      SETTLED_ALERT_TO: 'ana@shop.example, bo@shop.example',
      SETTLED_ALERT_ALLOW_PRIVATE: 'true',
    },
    mails,
    refuseWith: (given) => {
      refusal = given;
    },
  };
}

export function newCertificate(host = 'localhost'): { key: Buffer; cert: Buffer } {
  const folder = testFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', `subjectAltName=${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`, '-keyout', key, '-out', cert];
  execFileSync('openssl', [...made.split(' '), ...names], { stdio: 'ignore' });
  return { key: readFileSync(key), cert: readFileSync(cert) };
}

function parsed(raw: string): Pick<Mail, 'headers' | 'text'> {
  const [head = '', ...rest] = raw.split('\r\n\r\n');
  const lines = head.replace(/\r\n[ \t]+/g, ' ').split('\r\n');
  const headers = lines.map((line) => [
    line.slice(0, line.indexOf(':')).toLowerCase(),
    line.slice(line.indexOf(':') + 2),
  ]);
  const named: Record<string, string> = Object.fromEntries(headers);
  const body = rest.join('\r\n\r\n').replaceAll('\r\n', '\n');
  const isQuoted = named['content-transfer-encoding'] === 'quoted-printable';
  return { headers: named, text: isQuoted ? unquoted(body) : body };
}

/** Quoted-printable (RFC 2045 §6.7). */
function unquoted(text: string): string {
  return text
    .replace(/=\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
