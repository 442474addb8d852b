import { chmodSync, chownSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { testFolder } from '../support/app.ts';
import { spawnSettled } from '../support/process.ts';
import { say } from './settled.ts';

const KEY = Buffer.from('canary-canary-canary-canary-cana').toString('base64');
const SHOP_SECRET = `whsec_${KEY}`;

/** Every setting that holds a secret, or may; each has one. */
const SECRETS = {
  SETTLED_STORE: 'postgres://settled:canary@db.example.com:5432/settled',
  SETTLED_STORE_DIRECT: 'postgres://settled:canary@db.example.com:5433/settled',
  SETTLED_OPERATOR_TOKEN: 'canary-of-the-operator',
  SETTLED_SHOP_TOKEN: 'canary-of-the-shop-1',
  SETTLED_SECRETS_KEY: KEY,
  SETTLED_SECRETS_KEY_PREVIOUS: Buffer.alloc(32, 'canary-2').toString('base64'),
  SETTLED_API_URL: 'https://links.example.com',
  SETTLED_API_KEY: 'canary-of-the-api',
  SETTLED_SHOP_URL: 'https://shop.example.com/settled?key=canary',
  SETTLED_SHOP_SECRET: SHOP_SECRET,
  SETTLED_PROXY_AUTH: 'user=X-User; secret=X-Proxy:canary-of-the-proxy-1; admin=*',
};

type Shown = { name: string; value: string | null; source: string; file: string | null; hidden: boolean };

describe('cli: config', () => {
  it.runIf(process.getuid?.() === 0).for([
    ['refuses what another user left in a folder that all can write', 0o1777, EXIT.configuration],
    ["reads another user's .env in a folder of that user", 0o755, EXIT.ok],
  ] as const)('%s', async ([_, mode, exit]) => {
    const folder = testFolder();
    writeFileSync(join(folder, '.env'), 'SETTLED_CURRENCY=EUR\n');
    for (const path of [folder, join(folder, '.env')]) chownSync(path, 65_534, 65_534);
    chmodSync(folder, mode);
    const { code, stdout, stderr } = await spawnSettled(['config', '--json'], {}, { cwd: folder }).finished;
    expect(code).toBe(exit);
    if (exit === EXIT.ok) expect(stdout).toContain('"EUR"');
    else expect(JSON.parse(stderr).error.message).toMatch(/\.env belongs to user 65534, in a folder that every user/);
  });

  it('shows every setting with its value and its source', async () => {
    const folder = testFolder();
    writeFileSync(join(folder, 'key'), `${KEY}\n`);
    writeFileSync(join(folder, '.env'), 'SETTLED_CURRENCY="BRL USDT:2"\nSETTLED_CONFIRM=in-doubt\n');
    const environment = { SETTLED_CONFIRM: '', SETTLED_RETURN: 'on', SETTLED_SECRETS_KEY_FILE: join(folder, 'key') };
    const ended = await spawnSettled(['config', '--json'], environment, { cwd: folder }).finished;
    expect(ended).toMatchObject({ code: 0, stderr: '' });
    const settings: Shown[] = JSON.parse(ended.stdout).settings;
    expect(settings.map(({ name }) => name)).toEqual(Object.values(SETTINGS).map(({ name }) => name));
    const of = (name: string) => settings.find((one) => one.name === name);
    expect(of('SETTLED_CURRENCY')).toMatchObject({ value: 'BRL USDT', source: '.env', file: join(folder, '.env') });
    expect(of('SETTLED_CONFIRM')).toMatchObject({ value: 'in-doubt', source: 'default', file: null });
    expect(of('SETTLED_RETURN')).toMatchObject({ value: 'on', source: 'environment', file: null });
    expect(of('SETTLED_SHOP_URL')).toMatchObject({ value: null, source: 'not set', hidden: false });
    expect(of('SETTLED_SECRETS_KEY')).toMatchObject({
      value: null,
      hidden: true,
      source: 'file',
      file: join(folder, 'key'),
    });
    const human = await spawnSettled(['config', '--set'], environment, { cwd: folder }).finished;
    expect(human.stdout).toMatch(
      /^SETTING +VALUE +SOURCE\nSETTLED_SECRETS_KEY +\(hidden\) +file \/.*key\nSETTLED_RETURN +on +environment\nSETTLED_CURRENCY +BRL USDT +\.env\n\n\.env is \/.*\.env\.\n$/,
    );
  });

  it('never shows a secret, whichever setting holds it', async () => {
    const { text, data } = await say(['config'], SECRETS);
    expect(text + JSON.stringify(data)).not.toMatch(new RegExp(`canary|${KEY}`));
    expect(text).toMatch(/^SETTLED_STORE +postgres:\/\/db\.example\.com:5432\/settled +environment$/m);
    expect(text).toMatch(/^SETTLED_SHOP_URL +https:\/\/shop\.example\.com\/… +environment$/m);
  });

  it('shows every setting that holds no secret', async () => {
    const harmless = {
      SETTLED_TIMEZONE: 'America/Sao_Paulo',
      SETTLED_HOOKS_CORS: 'https://shop.example.com',
      SETTLED_CONSOLE_URL: 'https://settled.example.com',
      SETTLED_CONSOLE_BADGE: 'sandbox',
      SETTLED_LOG_FORMAT: 'json',
    };
    const rest = Object.values(SETTINGS).filter(({ name, fallback }) => fallback !== null && !(name in SECRETS));
    const given = { ...harmless, ...Object.fromEntries(rest.map(({ name, fallback }) => [name, String(fallback)])) };
    const { data } = await say(['config'], given);
    const shown = (data.settings as Shown[]).filter(({ value }) => value !== null).map(({ name }) => name);
    expect(shown).toEqual(expect.arrayContaining(Object.keys(given)));
  });

  it('shows what is wrong, and neither the wrong text nor what is beside it', async () => {
    const wrong = {
      SETTLED_TOLERANCE_SECONDS: '0',
      SETTLED_STORE: 'postgres://settled:canary@:5432x/',
      SETTLED_STROE: 'x',
    };
    const { text, data } = await say(['config'], wrong, EXIT.configuration);
    expect(text).toMatch(/^SETTLED_TOLERANCE_SECONDS +cannot be used +environment$/m);
    expect(data.fault).toMatch(/SETTLED_STROE is not a setting.*Did you mean SETTLED_STORE\?/);
    expect(text).toContain('SETTLED_TOLERANCE_SECONDS is "0"; write whole seconds from 1 to 86400');
    expect(text + JSON.stringify(data)).not.toContain('canary');
  });
});
