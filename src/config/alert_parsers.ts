import { type Parser, Unfit } from './parsers.ts';

/** Readers of the texts of settings about alerts, like those of `parsers.ts`. */

export type SmtpServer = {
  readonly host: string;
  readonly port: number;
  /** TLS from the first byte. Otherwise the connection must turn to TLS (STARTTLS) before anything is said. */
  readonly isSecure: boolean;
  readonly user: string | null;
  readonly password: string | null;
};

const SMTP_PORTS = { 'smtps:': 465, 'smtp:': 587 } as const;

/** `smtps://user:password@host:465`, or `smtp://` for a server that turns to TLS by STARTTLS. */
export function parseSmtp(text: string): SmtpServer {
  const url = URL.parse(text);
  const port = SMTP_PORTS[url?.protocol as keyof typeof SMTP_PORTS];
  const isCutShort = url !== null && (url.pathname.length > 1 || url.search !== '' || url.hash !== '');
  if (url === null || port === undefined || url.hostname === '' || isCutShort) {
    throw new Error(
      'is no address of a mail server: write smtps://user:password@smtp.example.com:465, or smtp:// for STARTTLS; write ' +
        'each of / ? # @ : and % in user and password as %2F, %3F, %23, %40, %3A and %25',
    );
  }
  if ((url.username === '') !== (url.password === ''))
    throw new Error('must have both a user and a password, or neither');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? port : Number(url.port),
    isSecure: url.protocol === 'smtps:',
    user: decoded(url.username),
    password: decoded(url.password),
  };
}

function decoded(text: string): string | null {
  try {
    return text === '' ? null : decodeURIComponent(text);
  } catch {
    throw new Error('has a % in its user or password: write it as %25');
  }
}

/** At most so many plain addresses, separated by commas or spaces. Returns them with a comma between two. */
export function mailAddresses(most: number): Parser<string> {
  return (text) => {
    const addresses = text.split(/[,\s]+/).filter((one) => one !== '');
    const arePlain = addresses.every((one) => /^[^\s@<>,;:"()[\]\\]{1,64}@[A-Za-z0-9.-]{1,253}$/.test(one));
    if (arePlain && addresses.length > 0 && addresses.length <= most) return addresses.join(',');
    throw new Error(
      `must be ${most === 1 ? 'one plain mail address' : `1 to ${most} plain mail addresses`}, like ana@example.com`,
    );
  };
}

export function parseDigestTime(text: string): string {
  if (/^([01][0-9]|2[0-3]):[0-5][0-9]$/.test(text)) return text;
  throw new Unfit('write a time of the day, like 08:00');
}
