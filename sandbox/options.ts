import type { Environment } from './model.ts';
import type { Silences } from './silences.ts';

export const DEFAULT_LISTEN = { host: '127.0.0.1', port: 8790 } as const;

/** As the specification writes the service's brand. */
export const DEFAULT_HEADER_PREFIX = 'x-service';

export type SandboxOptions = {
  environment: Environment;
  listen: { host: string; port: number };
  /** Listening beyond loopback must be asked for: nothing here is protected. */
  allowRemote: boolean;
  /** A file to keep everything in; null for memory. */
  data: string | null;
  /** Null for one that follows from the seed. */
  apiKey: string | null;
  /** Null for a seed of its own. */
  seed: string | null;
  /** How many seconds of the sandbox pass in a real one. */
  timeScale: number;
  /** What the names of a delivery's two headers begin with. */
  headerPrefix: string;
  silences: Silences;
  /** Requests a minute for each API key; null for no limit. */
  rateLimit: number | null;
  /** Whether the merchant is inactive: every call is 403 then (spec section 5). */
  merchantInactive: boolean;
};
