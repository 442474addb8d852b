import { createHash } from 'node:crypto';

/** What is chosen by chance. All of it follows from the seed, so the same seed gives the same ids and secrets. */
export type Chance = {
  /** The id of the `number`-th thing of its kind: `pl_4f…`. */
  id(kind: 'link' | 'payment' | 'event' | 'delivery' | 'merchant', number: number): string;
  /** The short address of the `number`-th link: 10 characters, so that no two of a million links are alike. */
  short(number: number): string;
  /** The signing secret of the `number`-th link: 32 bytes, as text. */
  secret(number: number): string;
  apiKey(): string;
};

const PREFIXES = { link: 'pl', payment: 'pay', event: 'evt', delivery: 'dlv', merchant: 'mer' } as const;

export function openChance(seed: string): Chance {
  const digest = (what: string, number: number) => createHash('sha256').update(`${seed}/${what}/${number}`).digest();
  return {
    id: (kind, number) => `${PREFIXES[kind]}_${digest(kind, number).toString('hex').slice(0, 24)}`,
    short: (number) => digest('short', number).toString('base64url').replaceAll(/[-_]/g, '').slice(0, 10),
    secret: (number) => `whsec_${digest('secret', number).toString('base64url')}`,
    apiKey: () => `sandbox_${digest('api key', 1).toString('base64url').slice(0, 32)}`,
  };
}
