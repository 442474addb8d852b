import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Config, currentApiKey, readConfig } from '../../src/config/config.ts';
import { Fault } from '../../src/fault.ts';
import { postgresAddress, sqliteAddress, storeFile } from '../../src/store/address.ts';
import { PRIVATE_HOSTS } from '../notify/hosts.ts';
import { testFolder } from '../support/app.ts';

const KEY = randomBytes(32);
const NEXT_KEY = randomBytes(32);
/** A shop secret of so many bytes, and those bytes. */
const shopSecret = (bytes: number, fill = 1) => {
  const key = Buffer.alloc(bytes, fill);
  return { key, text: `whsec_${key.toString('base64')}` };
};
const SHOP = { SETTLED_SHOP_URL: 'https://shop.example.com/settled', SETTLED_SHOP_SECRET: shopSecret(32).text };

const ALERTS = { SETTLED_ALERT_URL: 'https://hooks.example.com/T0', SETTLED_ALERT_SECRET: shopSecret(32).text };
/** A server as it is read. */
const smtp = (over: object) => {
  return { host: 'smtp.example.com', port: 465, isSecure: true, user: null, password: null, ...over };
};

type Setting = {
  key: keyof Config;
  unset: unknown;
  good: readonly (readonly [text: string, value: unknown])[];
  bad: readonly string[];
};

/** Texts that are read as they are. */
const same = (...texts: string[]) => texts.map((text) => [text, text] as const);
/** Texts that are read as numbers. */
const numbers = (...texts: string[]) => texts.map((text) => [text, Number(text)] as const);
const SWITCH = ['on', 'true', 'off', 'false'].map((text) => [text, text === 'on' || text === 'true'] as const);

const SETTINGS: Record<string, Setting> = {
  SETTLED_STORE: {
    key: 'store',
    unset: sqliteAddress('./data/settled.db'),
    good: [
      ['sqlite:/var/lib/settled/settled.db', sqliteAddress('/var/lib/settled/settled.db')],
      ['sqlite:./a folder/a:b.db', sqliteAddress('./a folder/a:b.db')],
      ...[
        ['postgres://me:hidden@db.example.com/settled', 'postgres://db.example.com:5432/settled'],
        ['postgresql://me:hidden@db:6432/pay?sslmode=verify-full', 'postgres://db:6432/pay'],
        ['postgres://me@[::1]/settled', 'postgres://[::1]:5432/settled'],
        ['postgres://db/settled?user=me&password=hidden&port=1', 'postgres://db:1/settled'],
        [
          'postgres://db/s?sslmode=no-verify&sslnegotiation=direct&channel_binding=require&connect_timeout=3',
          'postgres://db:5432/s',
        ],
        ['postgres://me@localhost/settled?host=/run/pg', 'postgres://localhost:5432/settled?host=/run/pg'],
        ['postgres://me:a%2Fb%40c@db/s%C3%A3o', 'postgres://db:5432/são'],
      ].map(([url = '', name = '']) => {
        return [url, { engine: 'postgres', servers: [{ url, name }], name }] as const;
      }),
    ],
    bad: [
      '/var/lib/settled.db',
      'sqlite:',
      'sqlite::memory:',
      'mysql://me:hidden@db/settled',
      'postgres:/me:hidden@db/settled',
      'postgres://me:hidden@db',
      'postgres://me:hidden@db/',
      'postgres://me:hidden@/settled',
      'postgres://me:hidden@db/settled/other',
      'postgres://me:hidden@db:port/settled',
      'postgres://me:hidden@db/%E0%A4%A',
      'postgres://me:1/hidden@db/settled',
      'postgres://me:1/hidden@db',
      'postgres://me:1?hidden@db/settled',
      'postgres://me:1#hidden@db/settled',
      'postgres://me:100%hidden@db/settled',
      'postgres://db/settled?query_timeout=0&password=hidden',
      'postgres://db/settled?hidden=1',
      ...[
        'port=99999',
        'port=abc',
        'port=0',
        'sslmode=bogus',
        'sslmode=allow',
        'sslmode=prefer',
        'sslmode=require',
        'sslmode=verify-ca',
        'sslmode=',
        'sslmode=disable&sslmode=verify-full',
        'sslrootcert=',
        'sslcert=/cert.pem',
        'sslnegotiation=bogus',
        'sslnegotiation=direct&sslmode=disable',
        'channel_binding=bogus',
        'connect_timeout=abc',
        'target_session_attrs=bogus',
        'uselibpqcompat=true',
      ].map((said) => `postgres://me:hidden@db/settled?${said}`),
      'POSTGRES://me:hidden@db/settled',
      '"postgres://me:hidden@db/settled"',
      'host=db password=hidden',
      'SQLITE:./x',
      'sqlite: ./x',
      'sqlite:./x ',
      'sqlite: :memory:',
    ],
  },
  SETTLED_STORE_DIRECT: {
    key: 'storeDirect',
    unset: null,
    good: [['postgres://me:hidden@db/settled', postgresAddress('postgres://me:hidden@db/settled')]],
    bad: [
      'sqlite:./data/settled.db',
      'me:hidden@db/settled',
      'POSTGRES://me:hidden@db/settled',
      'postgres://me:hidden@db/',
    ],
  },
  SETTLED_STORE_DURABILITY: {
    key: 'storeDurability',
    unset: null,
    good: [
      ['declared:Neon keeps its log on three safekeepers', 'Neon keeps its log on three safekeepers'],
      ['declared: São Paulo, disco espelhado ', 'São Paulo, disco espelhado'],
      [`declared:${'y'.repeat(200)}`, 'y'.repeat(200)],
    ],
    bad: [
      'declared',
      'declared:',
      'declared:   ',
      'Declared:it is so',
      'on',
      `declared:${'y'.repeat(201)}`,
      'declared:one line\nand another',
      'declared:\u202eturned',
      'declared:\u0007',
    ],
  },
  SETTLED_PUBLIC_URL: {
    key: 'publicUrl',
    unset: 'http://127.0.0.1:8787',
    good: [
      ['https://pay.example.com', 'https://pay.example.com'],
      ['https://example.com/pay/', 'https://example.com/pay'],
    ],
    bad: [
      'pay.example.com',
      'ftp://pay.example.com',
      'https://',
      'https://me:hidden@pay.example.com',
      'https://:hidden@pay.example.com',
      'https://me:1/hidden@pay.example.com',
      'https://pay.example.com/?a=b',
      'https://pay.example.com/#a',
    ],
  },
  SETTLED_HOOKS_LISTEN: {
    key: 'hooksListen',
    unset: { host: '127.0.0.1', port: 8787 },
    good: [
      ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
      ['[::1]:8787', { host: '::1', port: 8787 }],
      ['localhost:65535', { host: 'localhost', port: 65_535 }],
    ],
    bad: ['8787', ':8787', '127.0.0.1', '127.0.0.1:', '127.0.0.1:65536', '127.0.0.1:-1', '::1:8787', 'a:1.5'],
  },
  SETTLED_OPERATOR_LISTEN: {
    key: 'operatorListen',
    unset: { host: '127.0.0.1', port: 8788 },
    good: [['0.0.0.0:8788', { host: '0.0.0.0', port: 8788 }]],
    bad: ['8788', '127.0.0.1:99999', 'http://127.0.0.1:8788'],
  },
  SETTLED_OPERATOR_TOKEN: {
    key: 'operatorToken',
    unset: null,
    good: same('sixteen-letters!', 'x'.repeat(512)),
    bad: [
      'x'.repeat(513),
      'fifteen-letters',
      'with a space in the middle',
      'with-umläuts-in-it',
      'line\nbreak-in-the-middle',
    ],
  },
  SETTLED_SHOP_TOKEN: {
    key: 'shopToken',
    unset: null,
    good: same('another-token-of-16'),
    bad: ['short', 'with a space in the middle'],
  },
  SETTLED_SECRETS_KEY: {
    key: 'secretsKey',
    unset: null,
    good: [[KEY.toString('base64'), KEY]],
    bad: [
      KEY.subarray(1).toString('base64'),
      Buffer.concat([KEY, KEY]).toString('base64'),
      KEY.toString('hex'),
      `${KEY.toString('base64')}=`,
      KEY.toString('base64').replace('=', ''),
    ],
  },
  SETTLED_SECRETS_KEY_PREVIOUS: {
    key: 'secretsKeyPrevious',
    unset: null,
    good: [[KEY.toString('base64'), KEY]],
    bad: [KEY.subarray(1).toString('base64'), KEY.toString('hex')],
  },
  SETTLED_TOLERANCE_SECONDS: {
    key: 'toleranceSeconds',
    unset: 300,
    good: numbers('1', '86400'),
    bad: ['0', '-1', '300.5', '3e2', '0x12c', '86401', 'five', '300 s', 'NaN', 'Infinity'],
  },
  SETTLED_API_URL: {
    key: 'apiUrl',
    unset: null,
    good: [
      ['https://links.example.com', 'https://links.example.com/api/v1'],
      ['https://links.example.com/', 'https://links.example.com/api/v1'],
      ['https://links.example.com/br/api/v1/', 'https://links.example.com/br/api/v1'],
      ['http://127.0.0.1:8790', 'http://127.0.0.1:8790/api/v1'],
      ['http://[::1]:8790', 'http://[::1]:8790/api/v1'],
      ['http://localhost:8790', 'http://localhost:8790/api/v1'],
    ],
    bad: [
      'links.example.com',
      'http://links.example.com',
      'http://127.0.0.1.example.com',
      'http://10.0.0.1',
      'https://me:hidden@links.example.com',
      'https://links.example.com/?a=b',
      'ftp://127.0.0.1',
    ],
  },
  SETTLED_API_KEY: {
    key: 'apiKey',
    unset: null,
    good: same('k'),
    bad: ['with a space', 'with-umläuts', 'line\nbreak', 'x'.repeat(513)],
  },
  SETTLED_API_BUDGET_PER_MINUTE: {
    key: 'apiSlots',
    unset: 50,
    good: numbers('5', '55'),
    bad: ['4', '56', '60', '0', '-5', '5.5', '5e1', 'fifty', '050'],
  },
  SETTLED_CONFIRM: { key: 'confirm', unset: 'in-doubt', good: same('in-doubt'), bad: ['never', 'Always', 'true'] },
  SETTLED_LINK_LIFETIME: {
    key: 'linkLifetimeMs',
    unset: 259_200_000,
    good: [
      ['5m', 300_000],
      ['12h', 43_200_000],
      ['365d', 31_536_000_000],
    ],
    bad: ['4m', '366d', '8761h', '3', '3 d', '3D', '0d', '-1d', '1.5h', '1h30m', '1w', '999999d'],
  },
  SETTLED_RETURN: { key: 'customerReturn', unset: false, good: SWITCH, bad: ['yes', 'True', 'ON', '1', 'on off'] },
  SETTLED_CURRENCY: {
    key: 'currency',
    unset: 'BRL',
    good: [
      ['JPY', 'JPY'],
      ['USDT:2', 'USDT'],
      ['BRL USDT:2 POINTS:2', 'BRL USDT POINTS'],
    ],
    bad: ['brl', 'REAL', 'R$', 'BR', 'USDT', 'USDT:6', 'usdt:2', 'BRL:2', 'BRL  USD', 'A:2'],
  },
  SETTLED_HEADER_PREFIX: {
    key: 'headerPrefix',
    unset: 'x-service',
    good: [...same('x-acme', 'acme', 'signature'), ['X-Acme-Pay', 'x-acme-pay']],
    bad: ['x acme', 'x-acme:', 'x-acmé', 'x-acme-', 'x-acme-signature', 'X-Acme-Timestamp', '"x-acme"', 'x'.repeat(65)],
  },
  SETTLED_HOOKS_CORS: {
    key: 'hooksCors',
    unset: null,
    good: same('https://sandbox.example.com'),
    bad: ['*', 'null', 'https://sandbox.example.com/', 'https://a.example https://b.example', 'sandbox.example'],
  },
  SETTLED_SHOP_URL: {
    key: 'shopUrl',
    unset: null,
    good: [
      ['https://shop.example.com', 'https://shop.example.com/'],
      ['https://shop.example.com:8443/settled?key=a%20b', 'https://shop.example.com:8443/settled?key=a%20b'],
      ['https://лавка.рф/in', 'https://xn--80aaf6ac.xn--p1ai/in'],
      ['HTTPS://Shop.Example.Com./', 'https://shop.example.com./'],
      ['https://1.1.1.1/settled', 'https://1.1.1.1/settled'],
      ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
      ['https://[::ffff:1.1.1.1]/', 'https://[::ffff:101:101]/'],
      ['https://[64:ff9b::1.1.1.1]/', 'https://[64:ff9b::101:101]/'],
    ],
    bad: [
      'shop.example.com/settled',
      'ftp://shop.example.com',
      'https://',
      'https://me@shop.example.com',
      'https://:hidden@shop.example.com',
      'https://shop.example.com/#settled',
      'http://shop.example.com',
      'http://1.1.1.1',
      'https://shop',
      'https://localhost.',
      'https://shop.test',
      'https://shop。test',
      'https://ｓｈｏｐ.ｌｏｃａｌ',
      'https://shop.home.arpa',
      'https://metadata.google.internal',
    ],
  },
  SETTLED_SHOP_SECRET: {
    key: 'shopSecrets',
    unset: null,
    good: [
      [shopSecret(24).text, [shopSecret(24).key]],
      [shopSecret(64).text, [shopSecret(64).key]],
      [`${shopSecret(32, 2).text} ${shopSecret(32).text}`, [shopSecret(32, 2).key, shopSecret(32).key]],
      [`${shopSecret(32, 2).text}\n${shopSecret(32).text}`, [shopSecret(32, 2).key, shopSecret(32).key]],
    ],
    bad: [
      'whsec_',
      shopSecret(23).text,
      shopSecret(65).text,
      shopSecret(32).key.toString('base64'),
      shopSecret(32).text.replace('=', ''),
      `${shopSecret(32).text}=`,
      `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}=`,
      `${shopSecret(32).text},${shopSecret(32, 2).text}`,
      `${shopSecret(32).text} `,
      `${shopSecret(32).text} short`,
      `${shopSecret(32).text} ${shopSecret(32, 2).text} ${shopSecret(32, 3).text}`,
    ],
  },
  SETTLED_SHOP_ALLOW_PRIVATE: { key: 'shopAllowPrivate', unset: false, good: SWITCH, bad: ['yes', '1', 'TRUE', 'On'] },
  SETTLED_CONSOLE_URL: {
    key: 'consoleUrl',
    unset: null,
    good: [
      ...same('https://shop.example.com/ops/pay', 'http://127.0.0.1:9000'),
      ['https://shop.example.com/', 'https://shop.example.com'],
    ],
    bad: [
      'http://shop.example.com',
      'shop.example.com',
      'https://shop.example.com/a b',
      'https://shop.example.com/a//b',
    ],
  },
  SETTLED_CONSOLE_BADGE: { key: 'consoleBadge', unset: null, good: same('sandbox'), bad: ['<b>', 'x'.repeat(25), ' '] },
  SETTLED_TIMEZONE: {
    key: 'timezone',
    unset: null,
    good: same('America/Sao_Paulo', 'UTC'),
    bad: ['Mars/Olympus', 'Sao Paulo', ' '],
  },
  SETTLED_PROXY_AUTH: {
    key: 'proxyAuth',
    unset: null,
    good: [
      [
        'user=X-User; groups=X-Groups; secret=X-Proxy:0123456789abcdef; from=10.0.0.2, 10.1.0.0/16; operator=support; admin=platform',
        {
          user: 'x-user',
          groups: 'x-groups',
          secret: { header: 'x-proxy', value: '0123456789abcdef' },
          from: ['10.0.0.2/32', '10.1.0.0/16'],
          roles: { operator: 'support', admin: 'platform' },
        },
      ],
      [
        'user=X-User;from=::1;viewer=*',
        { user: 'x-user', groups: null, secret: null, from: ['::1/128'], roles: { viewer: '*' } },
      ],
    ],
    bad: [
      'user=X-User; viewer=*',
      'from=10.0.0.2; viewer=*',
      'user=X-User; from=10.0.0.2',
      'user=X-User; from=10.0.0.2; viewer=support',
      'user=X-User; from=anywhere; viewer=*',
      'user=X-User; secret=X-Proxy:short; viewer=*',
      'user=X-User; user=X-Other; from=10.0.0.2; viewer=*',
      'user=X-User; from=10.0.0.2; viewer=*; root=x',
      'user=two words; from=10.0.0.2; viewer=*',
    ],
  },
  SETTLED_ALERT_URL: {
    key: 'alertUrl',
    unset: null,
    good: same('https://hooks.example.com/services/T0/B0?a=b'),
    bad: ['hooks.example.com', 'http://hooks.example.com/a', 'https://10.0.0.1/a', 'https://me@hooks.example.com'],
  },
  SETTLED_ALERT_SECRET: {
    key: 'alertSecrets',
    unset: null,
    good: [[shopSecret(24).text, [shopSecret(24).key]]],
    bad: ['whsec_', 'hidden', shopSecret(23).text],
  },
  SETTLED_ALERT_SMTP: {
    key: 'alertSmtp',
    unset: null,
    good: [
      ['smtps://me:p%40ss@smtp.example.com', smtp({ user: 'me', password: 'p@ss' })],
      ['smtp://smtp.example.com', smtp({ port: 587, isSecure: false })],
      ['smtps://smtp.example.com:2465/', smtp({ port: 2465 })],
      ['smtps://[2606:4700::1111]', smtp({ host: '2606:4700::1111' })],
    ],
    bad: [
      'smtp.example.com',
      'https://smtp.example.com',
      'smtps://',
      'smtps://me@smtp.example.com',
      'smtps://me:a/hidden@smtp.example.com',
      'smtps://me:100%@smtp.example.com',
      'smtps://smtp.example.com/path',
      'smtps://smtp.example.com?a=b',
      'smtp://localhost:25',
      'smtps://10.0.0.1',
    ],
  },
  SETTLED_ALERT_FROM: {
    key: 'alertFrom',
    unset: null,
    good: same('settled@example.com'),
    bad: ['settled', 'settled <settled@example.com>', 'a@b@example.com', 'a@example.com,b@example.com'],
  },
  SETTLED_ALERT_TO: {
    key: 'alertTo',
    unset: null,
    good: [...same('ana@example.com'), ['ana@example.com, bo@example.com', 'ana@example.com,bo@example.com']],
    bad: ['ana', 'ana@example.com bo', 'Ana <ana@example.com>', Array(21).fill('ana@example.com').join(',')],
  },
  SETTLED_ALERT_ALLOW_PRIVATE: { key: 'alertAllowPrivate', unset: false, good: SWITCH, bad: ['yes'] },
  SETTLED_ALERT_DIGEST: {
    key: 'alertDigest',
    unset: null,
    good: same('08:00', '00:00', '23:59'),
    bad: ['8:00', '24:00', '08:60', '8am', 'daily'],
  },
  SETTLED_ALERT_CUSTOMERS: { key: 'alertCustomers', unset: false, good: SWITCH, bad: ['yes'] },
  SETTLED_HEARTBEAT_URL: {
    key: 'heartbeatUrl',
    unset: null,
    good: same('https://beats.example.com/a-long-id'),
    bad: ['beats.example.com', 'http://beats.example.com/a', 'https://localhost/a', 'https://me@beats.example.com'],
  },
  SETTLED_KEEP_BODIES: {
    key: 'keepBodiesMs',
    unset: 90 * 86_400_000,
    good: [
      ['1d', 86_400_000],
      ['48h', 172_800_000],
      ['3650d', 315_360_000_000],
    ],
    bad: ['23h', '3651d', '0', '90', 'never', '1y'],
  },
  SETTLED_LOG_LEVEL: { key: 'logLevel', unset: 'info', good: [['silent', 'silent']], bad: ['loud', 'INFO', 'verbose'] },
  SETTLED_LOG_FORMAT: { key: 'logFormat', unset: null, good: same('json', 'pretty'), bad: ['PRETTY', 'text', 'on'] },
};
/** What must be given beside a setting. */
const REPLICATED = { SETTLED_SECRETS_KEY: KEY.toString('base64'), SETTLED_OPERATOR_TOKEN: 'sixteen-letters!' };
const BESIDE: Record<string, Record<string, string>> = {
  SETTLED_STORE: REPLICATED,
  SETTLED_STORE_DIRECT: { SETTLED_STORE: 'postgres://me:hidden@pooler:6432/settled', ...REPLICATED },
  SETTLED_STORE_DURABILITY: { SETTLED_STORE: 'postgres://me:hidden@db/settled', ...REPLICATED },
  SETTLED_API_URL: { SETTLED_API_KEY: 'k' },
  SETTLED_API_KEY: { SETTLED_API_URL: 'https://links.example.com' },
  SETTLED_SECRETS_KEY_PREVIOUS: { SETTLED_SECRETS_KEY: NEXT_KEY.toString('base64') },
  SETTLED_SHOP_URL: { SETTLED_SHOP_SECRET: SHOP.SETTLED_SHOP_SECRET },
  SETTLED_SHOP_SECRET: { SETTLED_SHOP_URL: SHOP.SETTLED_SHOP_URL },
  SETTLED_ALERT_URL: { SETTLED_ALERT_SECRET: ALERTS.SETTLED_ALERT_SECRET },
  SETTLED_ALERT_SECRET: { SETTLED_ALERT_URL: ALERTS.SETTLED_ALERT_URL },
  SETTLED_ALERT_DIGEST: {
    SETTLED_ALERT_URL: ALERTS.SETTLED_ALERT_URL,
    SETTLED_ALERT_SECRET: ALERTS.SETTLED_ALERT_SECRET,
  },
  SETTLED_ALERT_SMTP: { SETTLED_ALERT_FROM: 'settled@example.com', SETTLED_ALERT_TO: 'ana@example.com' },
  SETTLED_ALERT_FROM: { SETTLED_ALERT_SMTP: 'smtps://smtp.example.com', SETTLED_ALERT_TO: 'ana@example.com' },
  SETTLED_ALERT_TO: { SETTLED_ALERT_SMTP: 'smtps://smtp.example.com', SETTLED_ALERT_FROM: 'settled@example.com' },
};
/** What follows from settings, with everything left out. */
const DERIVED = { apiKeyFile: null, publicUrlReaches: false, envFile: null };
const NAMES = Object.keys(SETTINGS);
const cases = Object.entries(SETTINGS);

const SHARED = { SETTLED_STORE: 'postgres://me:hidden@db/settled', ...BESIDE.SETTLED_STORE };

describe('configuration of a store that replicas share', () => {
  it('is whole with the key and the token that all replicas have', () => {
    expect(readConfig(SHARED).store.engine).toBe('postgres');
  });

  it.each(['SETTLED_SECRETS_KEY', 'SETTLED_OPERATOR_TOKEN'])('needs %s, and says how to make it', (name) => {
    const message = refusal({ ...SHARED, [name]: '' });
    expect(message.split('\n')).toHaveLength(2);
    expect(message).toMatch(new RegExp(`- ${name} is needed with PostgreSQL, .* with \`openssl rand -`));
  });

  it.each([
    ['SETTLED_STORE_DIRECT', 'postgres://me:hidden@db/settled', 'is for PostgreSQL behind a pooler'],
    ['SETTLED_STORE_DURABILITY', 'declared:it is so', 'is for PostgreSQL alone'],
  ])('is refused with a file if it says %s', (name, text, why) => {
    const message = refusal({ [name]: text });
    expect(message.split('\n')).toHaveLength(2);
    expect(message).toContain(`- ${name} ${why}`);
    expect(message).not.toContain('hidden');
  });

  it('names a key that is wrong, and not that it is missing', () => {
    expect(refusal({ ...SHARED, SETTLED_SECRETS_KEY: 'short' })).not.toContain('is needed');
  });

  it('leaves files to SQLite: settled keeps none for a database on another machine', () => {
    expect(() => storeFile(readConfig(SHARED).store)).toThrow('nothing is kept in files beside postgres://db:5432');
    expect(storeFile(readConfig({}).store)).toBe('./data/settled.db');
  });

  it('shows no password from any part of the address', () => {
    const { good, bad } = SETTINGS.SETTLED_STORE as Setting;
    for (const [text] of good) {
      const { store } = readConfig({ ...SHARED, SETTLED_STORE: text });
      expect(store.name).not.toMatch(/hidden|me[:@]|a%2Fb|a\/b/);
    }
    for (const text of bad) expect(refusal({ ...SHARED, SETTLED_STORE: text })).not.toContain('hidden');
  });
});

describe('configuration', () => {
  it('has a default for everything', () => {
    const defaults = Object.fromEntries(cases.map(([, { key, unset }]) => [key, unset]));
    expect(readConfig({})).toEqual({ ...defaults, ...DERIVED });
  });

  it('is frozen', () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true);
  });

  it.each(cases.flatMap(([name, { key, good }]) => good.map(([text, value]) => ({ name, key, text, value }))))(
    'reads $name $text',
    ({ name, key, text, value }) => {
      expect(readConfig({ [name]: text, ...BESIDE[name] })[key]).toEqual(value);
    },
  );

  it.each(cases.flatMap(([name, { bad }]) => bad.map((text) => ({ name, text }))))(
    'refuses $name $text and names it',
    ({ name, text }) => {
      const message = refusal({ [name]: text, ...BESIDE[name] });
      expect(message.split('\n')).toHaveLength(2);
      expect(message).toContain(`- ${name} `);
    },
  );

  it.each(cases.map(([name, { key, good }]) => ({ name, key, good })))(
    'reads $name from the file of its _FILE form, without the line break at its end',
    ({ name, key, good }) => {
      const [text, value] = good[0] as readonly [string, unknown];
      const file = aFile(`${text}\n`);
      expect(readConfig({ [`${name}_FILE`]: file, ...BESIDE[name] })[key]).toEqual(value);
    },
  );

  it.each(NAMES)('refuses %s and its _FILE given together', (name) => {
    const file = aFile('from the file');
    const message = refusal({ [name]: 'from the environment', [`${name}_FILE`]: file });
    expect(message).toContain(`- ${name} and ${name}_FILE are both given`);
  });

  it.each(NAMES)('refuses a %s_FILE that cannot be read, and says which and why', (name) => {
    const file = join(testFolder(), 'nothing');
    expect(refusal({ [`${name}_FILE`]: file })).toContain(`- ${name} cannot be read from ${file}: it does not exist`);
  });

  it('refuses an empty secret file: it would be no secret', () => {
    const file = aFile('\n');
    const message = refusal({ SETTLED_OPERATOR_TOKEN_FILE: file });
    expect(message).toContain(`SETTLED_OPERATOR_TOKEN from ${file} has 0 characters`);
  });

  it('takes an empty value for none', () => {
    expect(readConfig(Object.fromEntries(NAMES.map((name) => [name, ''])))).toEqual(readConfig({}));
  });

  it('refuses names that it does not know, and lists those that it knows', () => {
    const message = refusal({ SETTLED_TOLERANCE: '300', SETTLED_STORE_FIEL: 'x' });
    expect(message.split('\n')).toHaveLength(3);
    expect(message).toContain('SETTLED_TOLERANCE is not a setting');
    expect(message).toContain('SETTLED_STORE_FIEL is not a setting');
    for (const name of NAMES) expect(message).toContain(name);
  });

  it.each([
    ['SETTLED_TOLERANCE', 'SETTLED_TOLERANCE_SECONDS'],
    ['SETTLED_STORE_FIEL', 'SETTLED_STORE_FILE'],
    ['SETTLED_CURENCY', 'SETTLED_CURRENCY'],
    ['SETTLED_SHOP_SERCET', 'SETTLED_SHOP_SECRET'],
  ])('guesses for %s that %s was meant', (given, meant) => {
    expect(refusal({ [given]: 'x' })).toContain(`${given} is not a setting of this version. Did you mean ${meant}?`);
  });

  it('guesses nothing for a name that is like none', () => {
    expect(refusal({ SETTLED_DATABASE_PASSWORD: 'x' })).not.toContain('Did you mean');
  });

  it('names a secret of the shop and a key that are wrong, and not that half is missing', () => {
    for (const wrong of [{ SETTLED_SHOP_SECRET: 'whsec_short' }, { SETTLED_API_KEY: 'with a space' }]) {
      expect(refusal(wrong)).not.toContain('belong together');
    }
  });

  it('advises https for a public name first', () => {
    const message = refusal({ ...SHOP, SETTLED_SHOP_URL: 'http://shop.example.com/settled' });
    expect(message).toMatch(/which is not https: .* Write https:\/\/\. .*SETTLED_SHOP_ALLOW_PRIVATE=true/);
    expect(refusal({ ...SHOP, SETTLED_SHOP_URL: 'https://10.0.0.1/' })).toMatch(/which is not a public address\. If/);
  });

  it("leaves other programs' names alone", () => {
    expect(readConfig({ PATH: '/bin', UNSETTLED_STORE: 'x', settled_store: 'x' })).toEqual(readConfig({}));
  });

  it('ignores what Kubernetes gives a pod for a Service of that name, and what is for the sandbox', () => {
    const ofService = (name: string) => ({
      [`${name}_SERVICE_HOST`]: '10.0.0.1',
      [`${name}_SERVICE_PORT`]: '8787',
      [`${name}_SERVICE_PORT_HTTP_HOOKS`]: '8787',
      [`${name}_PORT`]: 'tcp://10.0.0.1:8787',
      [`${name}_PORT_8787_TCP`]: 'tcp://10.0.0.1:8787',
      [`${name}_PORT_8787_TCP_PROTO`]: 'tcp',
      [`${name}_PORT_8787_TCP_PORT`]: '8787',
      [`${name}_PORT_8787_TCP_ADDR`]: '10.0.0.1',
    });
    const pod = { ...ofService('SETTLED'), ...ofService('SETTLED_HOOKS'), SETTLED_SANDBOX_API_KEY: 'x' };
    expect(readConfig(pod)).toEqual(readConfig({}));
  });

  it.each([
    ['SETTLED_HOOKS_PORT', '8787'],
    ['SETTLED_PORT', '8787'],
    ['SETTLED_SERVICE', 'tcp://10.0.0.1:8787'],
    ['SETTLED_PORT_8787', 'tcp://10.0.0.1:8787'],
    ['SETTLED_SANDBOX', 'on'],
  ])('refuses %s=%s, which no other program sets', (name, value) => {
    expect(refusal({ [name]: value })).toContain(`${name} is not a setting`);
  });

  it("refuses a shop token that is the operator's", () => {
    const token = 'one-token-for-both';
    const message = refusal({ SETTLED_OPERATOR_TOKEN: token, SETTLED_SHOP_TOKEN: token });
    expect(message).toContain("SETTLED_SHOP_TOKEN must not be the operator's token");
    expect(message).not.toContain(token);
  });

  it.each(['SETTLED_SHOP_TOKEN', 'SETTLED_API_KEY', 'SETTLED_SECRETS_KEY', 'SETTLED_CURRENCY'])(
    'says of %s that a line end came with it',
    (name) => {
      const good = name === 'SETTLED_CURRENCY' ? 'EUR' : Buffer.alloc(32, 7).toString('base64');
      const hint = 'has a space or a line end before or after it';
      for (const value of [`${good}\n`, `${good}\r\n`, ` ${good}`]) {
        expect(refusal({ [name]: value })).toContain(hint);
      }
      expect(refusal({ [name]: `${good}é` })).not.toContain(hint);
    },
  );

  it('lists every fault at once, each once', () => {
    const message = refusal(Object.fromEntries(cases.map(([name, { bad }]) => [name, bad[0] as string])));
    const lines = message.split('\n').slice(1);
    expect(lines.map((line) => line.split(' ')[3])).toEqual(NAMES);
  });

  it.each([
    ['SETTLED_API_URL', 'SETTLED_API_KEY'],
    ['SETTLED_SHOP_URL', 'SETTLED_SHOP_SECRET'],
    ['SETTLED_ALERT_URL', 'SETTLED_ALERT_SECRET'],
  ] as const)('refuses %s without %s, and the reverse', (one, other) => {
    for (const name of [one, other]) {
      const half = { [name]: SETTINGS[name]?.good[0]?.[0] ?? '' };
      expect(refusal(half)).toContain(`${one} and ${other} belong together`);
    }
  });

  it('refuses a previous key without its successor, and one that is its own', () => {
    const previous = { SETTLED_SECRETS_KEY_PREVIOUS: KEY.toString('base64') };
    for (const key of ['', KEY.toString('base64')]) {
      const message = refusal({ ...previous, SETTLED_SECRETS_KEY: key });
      expect(message).toContain('give both, and two keys');
      expect(message).not.toContain(KEY.toString('base64'));
    }
  });

  it.each(PRIVATE_HOSTS)('lets notices go to %s only if private addresses are allowed', (host) => {
    const shop = { ...SHOP, SETTLED_SHOP_URL: `https://${host}:8443/settled?key=hidden-in-the-query` };
    const message = refusal(shop);
    expect(message).toContain('- SETTLED_SHOP_URL leads to https://');
    expect(message).toContain('SETTLED_SHOP_ALLOW_PRIVATE=true');
    expect(message).not.toContain('hidden-in-the-query');
    for (const scheme of ['https', 'http']) {
      const url = `${scheme}://${host}:8443/settled`;
      const allowed = { ...SHOP, SETTLED_SHOP_URL: url, SETTLED_SHOP_ALLOW_PRIVATE: 'true' };
      expect(readConfig(allowed).shopUrl).toBe(new URL(url).href);
    }
  });

  it.each(['SMTP', 'FROM', 'TO'])('refuses mail of alerts without SETTLED_ALERT_%s, and this one alone', (one) => {
    const mail = {
      SETTLED_ALERT_SMTP: 'smtps://smtp.example.com',
      SETTLED_ALERT_FROM: 'settled@example.com',
      SETTLED_ALERT_TO: 'ana@example.com',
    };
    const name = `SETTLED_ALERT_${one}` as keyof typeof mail;
    const others = Object.keys(mail).filter((other) => other !== name);
    for (const [half, missing] of [
      [{ ...mail, [name]: '' }, name],
      [{ [name]: mail[name] }, others.join(' and ')],
    ] as const) {
      const said = expect.stringMatching(`belong together: give all three, or none\\. Missing: ${missing}$`);
      expect(refusal(half).split('\n').slice(1)).toEqual([said]);
    }
  });

  it('refuses a digest that has nowhere to go', () => {
    expect(refusal({ SETTLED_ALERT_DIGEST: '08:00' })).toContain('SETTLED_ALERT_DIGEST has nowhere to go');
  });

  it.each(PRIVATE_HOSTS)('lets alerts, mail and heartbeats go to %s only if private addresses are allowed', (host) => {
    const given = {
      ...ALERTS,
      SETTLED_ALERT_URL: `https://${host}/T0`,
      SETTLED_ALERT_SMTP: `smtps://${host}`,
      SETTLED_ALERT_FROM: 'settled@example.com',
      SETTLED_ALERT_TO: 'ana@example.com',
      SETTLED_HEARTBEAT_URL: `https://${host}/id`,
    };
    const faults = refusal(given).split('\n').slice(1);
    const names = ['SETTLED_ALERT_URL', 'SETTLED_HEARTBEAT_URL', 'SETTLED_ALERT_SMTP'];
    for (const name of names) expect(faults.join('\n')).toContain(`${name} leads to`);
    expect(readConfig({ ...given, SETTLED_ALERT_ALLOW_PRIVATE: 'true' }).alertUrl).toBe(
      new URL(`https://${host}/T0`).href,
    );
  });

  it('asks always only if an API is configured', () => {
    expect(refusal({ SETTLED_CONFIRM: 'always' })).toContain("SETTLED_CONFIRM=always needs the service's API");
    const api = { SETTLED_API_URL: 'https://links.example.com', SETTLED_API_KEY: 'k' };
    expect(readConfig({ SETTLED_CONFIRM: 'always', ...api }).confirm).toBe('always');
  });

  it('reads a key that is kept in a file again, as it is by then', () => {
    const path = aFile('the-first-key\n');
    const config = readConfig({ SETTLED_API_URL: 'https://links.example.com', SETTLED_API_KEY_FILE: path });
    expect(config).toMatchObject({ apiKey: 'the-first-key', apiKeyFile: path });
    writeFileSync(path, 'the-second-key');
    expect(currentApiKey(config)).toBe('the-second-key');
    writeFileSync(path, 'two words');
    expect(() => currentApiKey(config)).toThrow('must be 1 to 512 printable');
    expect(currentApiKey({ apiKey: 'given', apiKeyFile: null })).toBe('given');
  });

  const REACHED = ['pay.example.com', 'pay.example.com./x', '1.1.1.1', '[2606:4700::1111]', 'homepay.example.com'];
  const PRIVATE_NAMES = ['localhost', 'local', 'internal.', 'localdomain', 'corp', 'home', 'test', 'invalid'];
  const UNREACHED = [...PRIVATE_HOSTS, 'localhost', 'pay', ...PRIVATE_NAMES.map((name) => `pay.${name}`)];
  it.each([
    ...REACHED.map((place) => [`https://${place}`, true] as const),
    ...UNREACHED.map((host) => [`https://${host}`, false] as const),
    ['http://pay.example.com', false],
  ] as const)('knows whether the service can deliver to %s: %s', (publicUrl, reaches) => {
    expect(readConfig({ SETTLED_PUBLIC_URL: publicUrl }).publicUrlReaches).toBe(reaches);
    const api = { SETTLED_API_URL: 'http://127.0.0.1:8790', SETTLED_API_KEY: 'k' };
    expect(readConfig({ SETTLED_PUBLIC_URL: publicUrl, ...api }).publicUrlReaches).toBe(true);
  });

  it.each([
    ['SETTLED_OPERATOR_TOKEN', 'short-secret'],
    ['SETTLED_SHOP_TOKEN', 'a secret with spaces'],
    ['SETTLED_SECRETS_KEY', 'a-secret-that-is-no-key'],
    ['SETTLED_STORE', 'postgres://me:a-password@db/settled'],
    ['SETTLED_STORE', 'host=localhost password=a-password'],
    ['SETTLED_STORE', 'a-password'],
    ['SETTLED_PUBLIC_URL', 'https://me:a-password@'],
    ['SETTLED_PUBLIC_URL', 'htps://me:a/a-password@x'],
    ['SETTLED_API_URL', 'htps://me:a/a-password@x'],
    ['SETTLED_API_URL', 'http://x.example.com/a-password'],
    ['SETTLED_CONFIRM', 'the-token-a-password'],
    ['SETTLED_HOOKS_CORS', 'the-token-a-password'],
    ['SETTLED_SECRETS_KEY_PREVIOUS', 'a-password'],
    ['SETTLED_SHOP_URL', 'shop.example.com/a-password'],
    ['SETTLED_SHOP_URL', 'shop.example.com?key=a-password'],
    ['SETTLED_SHOP_URL', 'ftp://me:a-password@shop.example.com/a-password'],
    ['SETTLED_SHOP_URL', 'https://me:a-password@shop.example.com'],
    ['SETTLED_SHOP_SECRET', 'whsec_a-password'],
    ['SETTLED_ALERT_URL', 'https://10.0.0.1/a-password'],
    ['SETTLED_ALERT_SECRET', 'whsec_a-password'],
    ['SETTLED_ALERT_SMTP', 'smtps://me:a-password@10.0.0.1'],
    ['SETTLED_ALERT_SMTP', 'me:a-password@smtp.example.com'],
    ['SETTLED_HEARTBEAT_URL', 'http://beats.example.com/a-password'],
    ['SETTLED_SHOP_SECRET', `${shopSecret(32).text} a-password`],
  ])('never repeats what %s held', (name, text) => {
    const message = refusal({ [name]: text });
    expect(message).not.toContain(text);
    expect(message).not.toContain('a-password');
  });

  it.each(NAMES.filter((name) => name !== 'SETTLED_API_KEY'))(
    'names the file that %s is read from, and not what stands there',
    (name) => {
      const file = aFile('pass word');
      const message = refusal({ [`${name}_FILE`]: file });
      expect(message).toContain(`- ${name} from ${file} `);
      expect(message).not.toContain('pass word');
    },
  );

  it('shows another value if it is too short for a secret', () => {
    expect(refusal({ SETTLED_CONFIRM: 'never' })).toContain('SETTLED_CONFIRM is "never"; choose one of');
  });

  it('does not show a secret that was given in place of its file', () => {
    const message = refusal({ SETTLED_SECRETS_KEY_FILE: KEY.toString('hex') });
    expect(message).toContain('SETTLED_SECRETS_KEY cannot be read from its file: it does not exist');
  });

  it.each([
    ['postgres://db/s?sslmode=require', /SETTLED_STORE must say sslmode=verify-full, no-verify or disable\. .*require/],
    ['postgres://db/s?port=99999', /SETTLED_STORE names a port that is none: write a number from 1 to 65535/],
    ['POSTGRES://db/s', /SETTLED_STORE must begin with postgres:\/\/ in small letters/],
  ])('says what to do about the address %s', (address, said) => {
    expect(refusal({ ...SHARED, SETTLED_STORE: address })).toMatch(said);
  });
});

it('takes no setting with the quotation marks that some programs keep around it, nor shows it', () => {
  for (const name of Object.keys(SETTINGS)) {
    for (const mark of ['"', "'"]) {
      for (const given of [
        { [name]: `${mark}a-token-of-the-shop${mark}` },
        { [`${name}_FILE`]: aFile(`${mark}a-token-of-the-shop${mark}\n`) },
      ]) {
        const message = refusal(given);
        expect(message).toContain(`${name} has quotation marks around it`);
        expect(message).not.toContain('a-token-of-the-shop');
      }
    }
  }
});

function refusal(environment: Record<string, string>): string {
  try {
    readConfig(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(Fault);
    expect(error).toMatchObject({ code: 'configuration_invalid', kind: 'terminal' });
    return (error as Fault).message;
  }
  throw new Error('the configuration was accepted');
}

function aFile(text: string): string {
  const path = join(testFolder(), 'value');
  writeFileSync(path, text);
  return path;
}
