import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Config, readConfig } from '../src/config.ts';
import { Fault } from '../src/fault.ts';
import { testFolder } from './support/app.ts';

const KEY = randomBytes(32);

type Setting = {
  key: keyof Config;
  unset: unknown;
  good: readonly (readonly [text: string, value: unknown])[];
  bad: readonly string[];
};

const SETTINGS: Record<string, Setting> = {
  SETTLED_STORE: {
    key: 'storePath',
    unset: './data/settled.db',
    good: [
      ['sqlite:/var/lib/settled/settled.db', '/var/lib/settled/settled.db'],
      ['sqlite:./a folder/a:b.db', './a folder/a:b.db'],
    ],
    bad: [
      '/var/lib/settled.db',
      'sqlite:',
      'sqlite::memory:',
      'postgres://me:hidden@db/settled',
      'SQLITE:./x',
      'sqlite: ./x',
      'sqlite:./x ',
      'sqlite: :memory:',
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
      'https://pay.example.com/?a=b',
      'https://pay.example.com/#a',
    ],
  },
  SETTLED_HOOKS_LISTEN: {
    key: 'hooksListen',
    unset: { host: '0.0.0.0', port: 8787 },
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
    good: [
      ['sixteen-letters!', 'sixteen-letters!'],
      ['x'.repeat(512), 'x'.repeat(512)],
    ],
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
    good: [['another-token-of-16', 'another-token-of-16']],
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
  SETTLED_TOLERANCE_SECONDS: {
    key: 'toleranceSeconds',
    unset: 300,
    good: [
      ['1', 1],
      ['86400', 86_400],
    ],
    bad: ['0', '-1', '300.5', '3e2', '0x12c', '86401', 'five', '300 s', 'NaN', 'Infinity'],
  },
  SETTLED_CURRENCY: {
    key: 'currency',
    unset: 'BRL',
    good: [['JPY', 'JPY']],
    bad: ['brl', 'REAL', 'R$', 'BR'],
  },
  SETTLED_HOOKS_CORS: {
    key: 'hooksCors',
    unset: null,
    good: [['https://sandbox.example.com', 'https://sandbox.example.com']],
    bad: [
      '*',
      'null',
      'https://sandbox.example.com/',
      'https://a.example https://b.example',
      'sandbox.example',
    ],
  },
  SETTLED_LOG_LEVEL: {
    key: 'logLevel',
    unset: 'info',
    good: [['silent', 'silent']],
    bad: ['loud', 'INFO', 'verbose'],
  },
};
const NAMES = Object.keys(SETTINGS);
const cases = Object.entries(SETTINGS);

describe('configuration', () => {
  it('has a default for everything', () => {
    const defaults = Object.fromEntries(cases.map(([, { key, unset }]) => [key, unset]));
    expect(readConfig({})).toEqual(defaults);
  });

  it('is frozen', () => {
    expect(Object.isFrozen(readConfig({}))).toBe(true);
  });

  it.each(
    cases.flatMap(([name, { key, good }]) => good.map(([text, value]) => ({ name, key, text, value }))),
  )('reads $name $text', ({ name, key, text, value }) => {
    expect(readConfig({ [name]: text })[key]).toEqual(value);
  });

  it.each(cases.flatMap(([name, { bad }]) => bad.map((text) => ({ name, text }))))(
    'refuses $name $text and names it',
    ({ name, text }) => {
      const message = refusal({ [name]: text });
      expect(message.split('\n')).toHaveLength(2);
      expect(message).toContain(`- ${name} `);
    },
  );

  it.each(cases.map(([name, { key, good }]) => ({ name, key, good })))(
    'reads $name from the file of its _FILE form, without the line break at its end',
    ({ name, key, good }) => {
      const [text, value] = good[0] as readonly [string, unknown];
      const file = aFile(`${text}\n`);
      expect(readConfig({ [`${name}_FILE`]: file })[key]).toEqual(value);
    },
  );

  it.each(NAMES)('refuses %s and its _FILE given together', (name) => {
    const file = aFile('from the file');
    const message = refusal({ [name]: 'from the environment', [`${name}_FILE`]: file });
    expect(message).toContain(`- ${name} and ${name}_FILE are both given`);
  });

  it.each(NAMES)('refuses a %s_FILE that cannot be read, and says which and why', (name) => {
    const file = join(testFolder(), 'nothing');
    expect(refusal({ [`${name}_FILE`]: file })).toContain(`- ${name} cannot be read from ${file}: ENOENT`);
  });

  it('refuses an empty secret file: it would be no secret', () => {
    expect(refusal({ SETTLED_OPERATOR_TOKEN_FILE: aFile('\n') })).toContain('SETTLED_OPERATOR_TOKEN has 0');
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

  it("leaves other programs' names alone", () => {
    expect(readConfig({ PATH: '/bin', UNSETTLED_STORE: 'x', settled_store: 'x' })).toEqual(readConfig({}));
  });

  it("refuses a shop token that is the operator's", () => {
    const token = 'one-token-for-both';
    const message = refusal({ SETTLED_OPERATOR_TOKEN: token, SETTLED_SHOP_TOKEN: token });
    expect(message).toContain('SETTLED_SHOP_TOKEN must not be the operator token');
    expect(message).not.toContain(token);
  });

  it('lists every fault at once, each once', () => {
    const message = refusal(Object.fromEntries(cases.map(([name, { bad }]) => [name, bad[0] as string])));
    const lines = message.split('\n').slice(1);
    expect(lines.map((line) => line.split(' ')[3])).toEqual(NAMES);
  });

  it.each([
    ['SETTLED_OPERATOR_TOKEN', 'short-secret'],
    ['SETTLED_SHOP_TOKEN', 'a secret with spaces'],
    ['SETTLED_SECRETS_KEY', 'a-secret-that-is-no-key'],
    ['SETTLED_STORE', 'postgres://me:a-password@db/settled'],
    ['SETTLED_PUBLIC_URL', 'https://me:a-password@'],
  ])('never repeats what %s held', (name, text) => {
    const message = refusal({ [name]: text });
    expect(message).not.toContain(text);
    expect(message).not.toContain('a-password');
  });
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
