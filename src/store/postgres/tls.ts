import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Fault } from '../../fault.ts';

/** The files that an address may name, and how each is read. */
const FILES = {
  sslrootcert: { read: certificate, what: 'no certificate in PEM' },
  sslcert: { read: certificate, what: 'no certificate in PEM' },
  sslkey: { read: createPrivateKey, what: 'no private key in PEM that is without a passphrase' },
} as const;

/** What is wrong with the files of TLS that an address names; null where they are as they should be. */
export function tlsFilesFault(url: string, name: string): Fault | null {
  const given = new URL(url).searchParams;
  for (const [parameter, { read, what }] of Object.entries(FILES)) {
    const path = given.get(parameter);
    if (path === null) continue;
    const file = `${name} cannot be connected to: ${parameter} in SETTLED_STORE names ${path}, which`;
    let text: string;
    try {
      text = readFileSync(path, 'utf8');
    } catch (error) {
      return unusable(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
    }
    try {
      read(text);
    } catch {
      return unusable(`${file} is ${what}.`);
    }
  }
  return null;
}

/** The first of those that a file holds. The driver takes a file without any for one that trusts nobody. */
function certificate(text: string): X509Certificate {
  if (!text.includes('-----BEGIN ')) throw new Error('not PEM');
  return new X509Certificate(text);
}

/** Transient: files are replaced while settled serves. */
function unusable(what: string): Fault {
  return new Fault('transient', 'configuration_invalid', what);
}
