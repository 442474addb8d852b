import { HEADER_PREFIX } from '../paylink/events.ts';
import { mailAddresses, parseDigestTime, parseSmtp } from './alert_parsers.ts';
import {
  duration,
  flag,
  oneOf,
  type Parser,
  parseApiKey,
  parseApiUrl,
  parseBadge,
  parseConsoleUrl,
  parseCurrency,
  parseDeclaration,
  parseHeaderPrefix,
  parseListen,
  parseOrigin,
  parsePublicUrl,
  parseSecretsKey,
  parseShopSecrets,
  parseShopUrl,
  parseStore,
  parseStoreDirect,
  parseTimezone,
  parseToken,
  wholeNumber,
} from './parsers.ts';
import { parseProxyAuth } from './proxy_auth.ts';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const LOG_FORMATS = ['json', 'pretty'] as const;

/** `fallback`: the default; null if the setting may be absent. `isShown`: whether people may see its value. */
export type Setting<T> = { name: string; fallback: string | null; isShown: boolean; parse: Parser<T> };

const TOLERANCE_ADVICE = 'write whole seconds from 1 to 86400';
const API_SLOTS_ADVICE = 'write a whole number from 5 to 55: the service allows 60 requests a minute';

/** Every setting, by its name in the configuration. */
export const SETTINGS = {
  store: setting('SETTLED_STORE', 'sqlite:./data/settled.db', parseStore),
  /** The same database without a pooler, for wakeups, migrations and indexes; null if `store` serves for these too. */
  storeDirect: plain('SETTLED_STORE_DIRECT', parseStoreDirect),
  /** The operator's declaration why a server that shows fsync off is durable; null: settled refuses such a server. */
  storeDurability: plain('SETTLED_STORE_DURABILITY', parseDeclaration),
  /** Without a trailing slash. */
  publicUrl: setting('SETTLED_PUBLIC_URL', 'http://127.0.0.1:8787', parsePublicUrl),
  hooksListen: setting('SETTLED_HOOKS_LISTEN', '127.0.0.1:8787', parseListen),
  operatorListen: setting('SETTLED_OPERATOR_LISTEN', '127.0.0.1:8788', parseListen),
  /** Null if it is in a file beside the database. Never null with a shared store; neither is `secretsKey`. */
  operatorToken: optional('SETTLED_OPERATOR_TOKEN', parseToken),
  shopToken: optional('SETTLED_SHOP_TOKEN', parseToken),
  /** 32 bytes; null if it is in a file beside the database. */
  secretsKey: optional('SETTLED_SECRETS_KEY', parseSecretsKey),
  /** The key that `secretsKey` replaces. Some secrets may still be sealed under it. */
  secretsKeyPrevious: optional('SETTLED_SECRETS_KEY_PREVIOUS', parseSecretsKey),
  toleranceSeconds: setting('SETTLED_TOLERANCE_SECONDS', '300', wholeNumber({ min: 1, max: 86_400 }, TOLERANCE_ADVICE)),
  /** The service's API with its path, for example https://links.example.com/api/v1; null: settled only receives. */
  apiUrl: plain('SETTLED_API_URL', parseApiUrl),
  apiKey: optional('SETTLED_API_KEY', parseApiKey),
  apiSlots: setting('SETTLED_API_BUDGET_PER_MINUTE', '50', wholeNumber({ min: 5, max: 55 }, API_SLOTS_ADVICE)),
  confirm: setting('SETTLED_CONFIRM', 'in-doubt', oneOf(['in-doubt', 'always'])),
  linkLifetimeMs: setting('SETTLED_LINK_LIFETIME', '3d', duration('5m', '365d')),
  /** Whether links send the customer back through settled. */
  customerReturn: setting('SETTLED_RETURN', 'off', flag),
  /** Codes, separated by spaces. The first is the default for an order. */
  currency: setting('SETTLED_CURRENCY', 'BRL', parseCurrency),
  /** The prefix of the names of a delivery's two headers, in lower case. */
  headerPrefix: setting('SETTLED_HEADER_PREFIX', HEADER_PREFIX, parseHeaderPrefix),
  hooksCors: plain('SETTLED_HOOKS_CORS', parseOrigin),
  /** The address for notices; null: the shop reads the feed. */
  shopUrl: plain('SETTLED_SHOP_URL', parseShopUrl),
  /** The keys that sign notices; two while the shop changes its secret. */
  shopSecrets: optional('SETTLED_SHOP_SECRET', parseShopSecrets),
  /** Whether notices may go to addresses that only this network knows. */
  shopAllowPrivate: setting('SETTLED_SHOP_ALLOW_PRIVATE', 'false', flag),
  /** Where people open the console, without a trailing slash; null if only on this machine. */
  consoleUrl: plain('SETTLED_CONSOLE_URL', parseConsoleUrl),
  /** A word beside the console's name, such as "sandbox"; null for none. */
  consoleBadge: plain('SETTLED_CONSOLE_BADGE', parseBadge),
  /** The time zone of the console's times and days; null: this machine's. */
  timezone: plain('SETTLED_TIMEZONE', parseTimezone),
  /** How a proxy says who signed in; null if people sign in with tokens. */
  proxyAuth: optional('SETTLED_PROXY_AUTH', parseProxyAuth),
  /** The hook that gets messages about what needs a person; null for none. */
  alertUrl: plain('SETTLED_ALERT_URL', parseShopUrl),
  /** The keys that sign them. */
  alertSecrets: optional('SETTLED_ALERT_SECRET', parseShopSecrets),
  /** The server by which they go as mail, with its user and password; null for none. */
  alertSmtp: optional('SETTLED_ALERT_SMTP', parseSmtp),
  alertFrom: plain('SETTLED_ALERT_FROM', mailAddresses(1)),
  /** Addresses, separated by commas. */
  alertTo: plain('SETTLED_ALERT_TO', mailAddresses(20)),
  /** Whether the hook, the mail server and the heartbeat may have addresses that only this network knows. */
  alertAllowPrivate: setting('SETTLED_ALERT_ALLOW_PRIVATE', 'false', flag),
  /** When the figures of the day are sent, in the time zone of the console; null: never. */
  alertDigest: plain('SETTLED_ALERT_DIGEST', parseDigestTime),
  /** Whether messages name customers. */
  alertCustomers: setting('SETTLED_ALERT_CUSTOMERS', 'off', flag),
  /** Fetched every minute while deliveries can be recorded; null: nothing is. */
  heartbeatUrl: plain('SETTLED_HEARTBEAT_URL', parseShopUrl),
  /** How long settled keeps the bodies of settled events. */
  keepBodiesMs: setting('SETTLED_KEEP_BODIES', '90d', duration('1d', '3650d')),
  logLevel: setting('SETTLED_LOG_LEVEL', 'info', oneOf(LOG_LEVELS)),
  /** Null: `pretty` on a terminal, `json` elsewhere. */
  logFormat: plain('SETTLED_LOG_FORMAT', oneOf(LOG_FORMATS)),
} as const;

/** With a default, which holds no secret. */
function setting<T>(name: string, fallback: string, parse: Parser<T>): Setting<T> {
  return { name, fallback, isShown: true, parse };
}

/** Without a default. It is, or holds, a secret, as a new one may: that is shown only if it is known to be `plain`. */
function optional<T>(name: string, parse: Parser<T>): Setting<T | null> {
  return { name, fallback: null, isShown: false, parse };
}

/** Without a default, and without a secret. */
function plain<T>(name: string, parse: Parser<T>): Setting<T | null> {
  return { name, fallback: null, isShown: true, parse };
}
