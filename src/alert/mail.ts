import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { isPrivateIp } from '../config/addresses.ts';
import type { SmtpServer } from '../config/alert_parsers.ts';
import { type Fault, transientFault } from '../fault.ts';
import { openTargetLookup, refusedAddress } from '../http/peer.ts';
import type { TargetOptions } from '../http/target.ts';
import { ANSWER_MS, type Channel, faultOf, MAIL_SERVER } from './hook.ts';
import { mailText } from './texts.ts';

export type MailOptions = Pick<TargetOptions, 'allowPrivate' | 'clock' | 'deadlineClock' | 'resolve'> & {
  server: SmtpServer;
  from: string;
  /** With a comma between two. */
  to: string;
};

/** How much of the server's answer is kept. */
const ANSWER_LENGTH_MAX = 200;

/** Sends messages as plain mail, each on a connection of its own, always by TLS. */
export function openMail({ server, from, to, allowPrivate, ...options }: MailOptions): Channel {
  const { host, port, isSecure, user, password } = server;
  const mayConnect = (address: string) => allowPrivate || !isPrivateIp(address);
  const look = openTargetLookup({ resolve: lookup, ...options, peer: MAIL_SERVER, deadlineMs: ANSWER_MS, mayConnect });
  const { promise: closed, resolve: close } = Promise.withResolvers<null>();

  /** The address to connect to: checked here, so that the name cannot change in between. */
  function address(): Promise<string> {
    if (isIP(host) !== 0)
      return mayConnect(host) ? Promise.resolve(host) : Promise.reject(refusedAddress(MAIL_SERVER, host));
    return new Promise((resolve, reject) => {
      look(host, {}, (error, found) => (error === null ? resolve(String(found)) : reject(error)));
    });
  }

  async function deliver(id: string, message: { subject: string; text: string }): Promise<string> {
    // Loaded when there is something to send: whoever configures no mail has it not in memory.
    const { createTransport } = await import('nodemailer');
    const transport = createTransport({
      host: await address(),
      port,
      secure: isSecure,
      requireTLS: true,
      tls: { servername: isIP(host) === 0 ? host : '' },
      ...(user === null || password === null ? {} : { auth: { user, pass: password } }),
      connectionTimeout: ANSWER_MS,
      greetingTimeout: ANSWER_MS,
      socketTimeout: ANSWER_MS,
      disableFileAccess: true,
      disableUrlAccess: true,
    });
    try {
      const messageId = `<${id}@${from.slice(from.lastIndexOf('@') + 1)}>`;
      const headers = { 'Auto-Submitted': 'auto-generated' };
      const { response } = await transport.sendMail({ ...message, from, to, messageId, headers });
      return response;
    } finally {
      transport.close();
    }
  }

  return {
    name: 'mail',
    write: (message) => JSON.stringify({ subject: message.title, text: mailText(message) }),
    send: async ({ id, body }) => {
      // For the whole mail: a server that answers a byte a second never falls silent.
      const late = Promise.withResolvers<never>();
      const cancel = options.deadlineClock.after(3 * ANSWER_MS, () => late.reject(tooLate));
      try {
        const answer = await Promise.race([deliver(id, JSON.parse(body)), late.promise, closed]);
        return answer === null ? null : { fault: null, answer: answer.slice(0, ANSWER_LENGTH_MAX) };
      } catch (error) {
        return { fault: mailFault(error), answer: said(error) };
      } finally {
        cancel();
      }
    },
    close: () => close(null),
  };
}

const tooLate = transientFault(
  'alert_timeout',
  `The mail server did not take the mail within ${(3 * ANSWER_MS) / 1000} s. It may still have taken it.`,
);

type SmtpError = Error & { code?: string; responseCode?: number; response?: string };

function said(error: unknown): string | null {
  return (error as SmtpError).response?.slice(0, ANSWER_LENGTH_MAX) ?? null;
}

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
  return `has a certificate that is not trusted: ${why}. If an authority of your own signed it, set NODE_EXTRA_CA_CERTS to its file`;
}
