import { lookup } from 'node:dns';
import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { isPrivateIp } from '../config/addresses.ts';
import type { SmtpServer } from '../config/alert_parsers.ts';
import { type Fault, transientFault } from '../fault.ts';
import { openTargetLookup, refusedAddress, withoutSecrets } from '../http/peer.ts';
import type { TargetOptions } from '../http/target.ts';
import { ANSWER_MS, type Channel, type ChannelAnswer, faultOf, MAIL_SERVER } from './hook.ts';
import { mailText } from './texts.ts';

export type MailOptions = Pick<TargetOptions, 'allowPrivate' | 'clock' | 'deadlineClock' | 'resolve'> & {
  server: SmtpServer;
  from: string;
  /** With a comma between two. */
  to: string;
};

/** How much of the server's answer is kept. */
const ANSWER_LENGTH_MAX = 200;
/** For the whole mail: a server may look at it before it answers, and one that answers a byte a second never falls silent. */
const MAIL_MS = 60_000;

/** Sends messages as plain mail, each on a connection of its own, always by TLS. */
export function openMail({ server, from, to, allowPrivate, ...options }: MailOptions): Channel {
  const { host, port, isSecure, user, password } = server;
  const auth = user === null || password === null ? null : { user, pass: password };
  const mayConnect = (address: string) => allowPrivate || !isPrivateIp(address);
  const look = openTargetLookup({ resolve: lookup, ...options, peer: MAIL_SERVER, deadlineMs: ANSWER_MS, mayConnect });
  const closing = new AbortController();

  /** Connects to one of the addresses that were checked, so that the name cannot change in between. */
  async function connected(signal: AbortSignal): Promise<Socket> {
    // An IP address is not looked up.
    if (isIP(host) !== 0 && !mayConnect(host)) throw refusedAddress(MAIL_SERVER, host);
    const socket = connect({ host, port, lookup: look, signal });
    const tooLong = () => socket.destroy(Object.assign(new Error(), { code: 'ETIMEDOUT' }));
    await once(socket, 'connect').finally(options.deadlineClock.after(ANSWER_MS, tooLong));
    return socket;
  }

  async function deliver(id: string, message: { subject: string; text: string }, connection: Socket) {
    // Loaded when there is something to send: whoever configures no mail has it not in memory.
    const { createTransport } = await import('nodemailer');
    const transport = createTransport({
      connection,
      // For its certificate.
      host,
      secure: isSecure,
      requireTLS: true,
      tls: { servername: isIP(host) === 0 ? host : '' },
      ...(auth === null ? {} : { auth }),
      greetingTimeout: ANSWER_MS,
      socketTimeout: 2 * MAIL_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    const messageId = `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`;
    const headers = { 'Auto-Submitted': 'auto-generated' };
    return transport.sendMail({ ...message, from, to, messageId, headers });
  }

  async function attempt(id: string, body: string): Promise<ChannelAnswer | null> {
    const late = new AbortController();
    const cancel = options.deadlineClock.after(MAIL_MS, () => late.abort());
    let connection: Socket | undefined;
    try {
      connection = await connected(AbortSignal.any([late.signal, closing.signal]));
      const { response, rejectedErrors = [] } = await deliver(id, JSON.parse(body), connection);
      const [refused] = rejectedErrors;
      const fault = refused === undefined ? null : receiverRefused(`${refused.recipient}: ${said(refused) ?? ''}`);
      return { fault, isTaken: true, answer: shown(response) };
    } catch (error) {
      if (closing.signal.aborted) return null;
      return { fault: late.signal.aborted ? tooLate() : mailFault(error), isTaken: false, answer: said(error) };
    } finally {
      cancel();
      connection?.destroy();
    }
  }

  /** A server may quote what it was sent. */
  function shown(answer: string): string {
    const secrets = auth === null ? [] : [`\0${auth.user}\0${auth.pass}`, auth.pass, auth.user];
    const written = secrets.map((secret) => Buffer.from(secret).toString('base64')).concat(auth?.pass ?? []);
    return withoutSecrets(answer, written).slice(0, ANSWER_LENGTH_MAX);
  }

  function said(error: unknown): string | null {
    const { response } = error as SmtpError;
    return response === undefined ? null : shown(response);
  }

  return {
    name: 'mail',
    write: (message) => JSON.stringify({ subject: message.title, text: mailText(message) }),
    send: ({ id, body }) => attempt(id, body),
    close: () => closing.abort(),
  };
}

function tooLate(): Fault {
  const message = `The mail server did not take the mail within ${MAIL_MS / 1000} s. It may still have taken it.`;
  return transientFault('alert_timeout', message);
}

/** The others got the mail, so it is not sent again. */
function receiverRefused(refusal: string): Fault {
  return transientFault('alert_refused', `The mail server refuses a receiver of SETTLED_ALERT_TO: ${refusal}.`);
}

type SmtpError = Error & { code?: string; responseCode?: number; response?: string };

function mailFault(error: unknown): Fault {
  const { code, responseCode, message = '' } = error as SmtpError;
  const tls = tlsWords(`${code} ${message}`, responseCode);
  if (tls !== null) return transientFault('alert_unreachable', `The mail server ${tls}.`);
  if (responseCode !== undefined) {
    const hint = code === 'EAUTH' ? 'Check user and password in SETTLED_ALERT_SMTP' : 'Look at what it says';
    return transientFault('alert_refused', `The mail server answered ${responseCode}. ${hint}.`);
  }
  if (code === undefined || code.startsWith('alert_')) return faultOf(error);
  if (code === 'ETIMEDOUT') {
    return transientFault(
      'alert_timeout',
      `The mail server did not answer within ${ANSWER_MS / 1000} s. Check SETTLED_ALERT_SMTP.`,
    );
  }
  const why = message.split('\n', 1)[0] || code;
  return transientFault(
    'alert_unreachable',
    `The mail server gave no answer: ${why}. Check SETTLED_ALERT_SMTP and the network.`,
  );
}

/** Why there is no TLS, and what to do; null if it is not about TLS. An error of a code and message, without the server's. */
function tlsWords(error: string, responseCode: number | undefined): string | null {
  if (/^ETLS .*STARTTLS/.test(error))
    return 'does not offer STARTTLS. Use one that does, or write smtps:// if it speaks TLS on a port of its own';
  if (responseCode !== undefined) return null;
  if (/wrong version number/i.test(error)) return 'speaks no TLS on this port: write smtp:// for STARTTLS';
  const [, why] = /^\S+ (.*(?:certificate|altnames).*)/i.exec(error) ?? [];
  if (why === undefined) return null;
  return `has a certificate that is not trusted: ${why}. If an authority of your own signed it, start settled with NODE_EXTRA_CA_CERTS=FILE in its environment, not in .env`;
}
