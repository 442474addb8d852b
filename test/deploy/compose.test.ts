import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Config, readConfig } from '../../src/config/config.ts';
import { testFolder } from '../support/app.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

type Service = {
  command?: string[];
  container_name?: string;
  environment: Record<string, string>;
  env_file: { path: string; required: boolean }[];
  ports?: string[];
  volumes: string[];
  depends_on?: Record<string, { condition: string }>;
  healthcheck?: { test?: string[]; disable?: boolean };
  [key: string]: unknown;
};
type Compose = { services: Record<string, Service>; volumes: Record<string, null> };

const composed = (file: string): Compose => parse(read(file), { merge: true, logLevel: 'silent' });
const service = (compose: Compose, name: string): Service => compose.services[name] as Service;

/** As compose does it: `${NAME:-}` and `${NAME:+TEXT}`. Throws for any other form. */
function filled(text: string, settings: Record<string, string>): string {
  return text.replace(/\$\{([^}]*)\}/g, (_, form: string) => {
    const [, name = '', how, word = ''] = /^(\w+):([-+])(.*)$/.exec(form) ?? [];
    if (how === undefined) throw new Error(`\${${form}} is of no form that is known here`);
    const value = settings[name] ?? '';
    if (how === '+') return value === '' ? '' : word;
    return value === '' ? word : value;
  });
}

/** The folder that the volume of a path in a container is here. */
const within = (folder: string, text: string) => text.replace(/^(?=\/(host\/|database-)?secrets)/, folder);

/** Runs what makes the secrets, and reads the configuration of a container that starts then. */
function start(file: string, name: string, settings: Record<string, string>, given: Record<string, string> = {}) {
  const compose = composed(file);
  const folder = testFolder();
  for (const path of ['host/secrets', 'secrets', 'database-secrets'])
    mkdirSync(join(folder, path), { recursive: true });
  for (const [secret, text] of Object.entries(given)) writeFileSync(join(folder, 'host/secrets', secret), text);
  const environmentOf = (one: Service) =>
    Object.fromEntries(Object.entries(one.environment).map(([key, text]) => [key, filled(text, settings)]));
  const maker = service(compose, 'secrets');
  const [, ...args] = (maker.command as string[]).map((word) => within(folder, word));
  const made = spawnSync(process.execPath, args, { cwd: ROOT, env: environmentOf(maker), encoding: 'utf8' });
  const config = (): Config => {
    const environment = { ...settings, ...environmentOf(service(compose, name)) };
    return readConfig(
      Object.fromEntries(Object.entries(environment).map(([key, text]) => [key, within(folder, text)])),
    );
  };
  return { ...made, config };
}

const API = { SETTLED_API_URL: 'https://links.example.com', SETTLED_PUBLIC_URL: 'https://pay.example.com' };
const SHOP = { SETTLED_SHOP_URL: 'https://shop.example.com/settled' };

const FILES = [
  ['compose.yaml', ['settled']],
  ['compose.postgres.yaml', ['settled-1', 'settled-2']],
] as const;

describe.each(FILES)('%s', (file, replicas) => {
  const compose = composed(file);

  it('starts in a fresh checkout: it makes every secret that the container needs', () => {
    for (const replica of replicas) {
      const started = start(file, replica, {});
      expect([started.status, started.stderr]).toEqual([0, '']);
      expect(started.config()).toMatchObject({ apiUrl: null, apiKey: null, shopUrl: null, shopSecrets: null });
      expect(started.config().shopToken).toMatch(/^[0-9a-f]{48}$/);
      expect(started.stdout).toMatch(/Read the operator's token:\s+docker compose .*exec settled/);
    }
  });

  it('takes the address of the service with its key, and that of the shop with a secret', () => {
    const [replica] = replicas;
    const started = start(file, replica, { ...API, ...SHOP }, { 'api-key': 'key-1', 'shop-token': 'x'.repeat(20) });
    expect([started.status, started.stderr]).toEqual([0, '']);
    const { apiUrl, apiKey, shopUrl, shopSecrets, shopToken } = started.config();
    expect([apiUrl, apiKey, shopUrl]).toEqual(['https://links.example.com/api/v1', 'key-1', SHOP.SETTLED_SHOP_URL]);
    expect([shopSecrets?.length, shopToken]).toEqual([1, 'x'.repeat(20)]);
  });

  it('starts nothing if the address of the service is there and its key is not', () => {
    expect(start(file, replicas[0], API)).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('secrets/api-key'),
    });
    for (const name of [...replicas, ...('postgres' in compose.services ? ['postgres'] : [])]) {
      const { depends_on } = service(compose, name);
      expect([name, depends_on?.secrets]).toEqual([name, { condition: 'service_completed_successfully' }]);
    }
  });

  it('reads every setting of .env, if there is one; .env.example names those that there are', () => {
    for (const name of replicas) {
      expect(service(compose, name).env_file).toEqual([{ path: '.env', required: false }]);
    }
    const names = [...read('.env.example').matchAll(/^(SETTLED_\w+)=/gm)].map(([, name]) => name);
    expect(names.length).toBeGreaterThan(5);
    // A name that is not known is refused whatever its value.
    expect(() => readConfig(Object.fromEntries(names.map((name) => [name, ''])))).not.toThrow();
  });

  it('publishes the public listener alone, on this machine', () => {
    const published = Object.values(compose.services).flatMap(({ ports = [] }) => ports);
    expect(published).toEqual(['127.0.0.1:8787:8787']);
  });

  it('lets settled write nothing but its volumes, with no privilege', () => {
    for (const name of ['secrets', ...replicas]) {
      const { read_only, cap_drop, security_opt } = service(compose, name);
      expect([name, read_only, cap_drop, security_opt]).toEqual([name, true, ['ALL'], ['no-new-privileges:true']]);
    }
    for (const name of replicas) expect(service(compose, name).volumes).toContain('secrets:/secrets:ro');
    expect(service(compose, 'secrets').network_mode).toBe('none');
  });

  it('mounts volumes where the image has a folder of its user: a new volume is like it', () => {
    const [, folders = ''] = /install -d -m 0700 -o 1000 -g 1000 (.*)$/m.exec(read('Dockerfile')) ?? [];
    const written = ['secrets', ...replicas].flatMap((name) => service(compose, name).volumes);
    const places = written.filter((volume) => /^[\w-]+:/.test(volume)).map((volume) => volume.split(':')[1]);
    expect(new Set(places).size).toBeGreaterThan(1);
    expect(places.filter((place) => !folders.split(' ').includes(place as string))).toEqual([]);
  });

  it('asks for the health of the container as the image does', () => {
    const [, asked = ''] = /CMD \["node", "(\/app\/bin\/\w+\.mjs)"\]/.exec(read('Dockerfile')) ?? [];
    expect(read(asked.replace('/app/', ''))).toContain('/readyz');
    for (const name of replicas) expect(service(compose, name).healthcheck?.test).toEqual(['CMD', 'node', asked]);
  });
});

describe('compose.yaml', () => {
  it('gives the container the name by which the pages speak of it', () => {
    const { container_name } = service(composed('compose.yaml'), 'settled');
    const named = [...read('docs/operations.md').matchAll(/docker (?:exec|stop) (\w+)(?!-)\b/g)].map(
      ([, name]) => name,
    );
    expect(named.length).toBeGreaterThan(1);
    expect(new Set(named)).toEqual(new Set([container_name]));
  });
});

describe('compose.postgres.yaml', () => {
  const compose = composed('compose.postgres.yaml');
  const proxy = read('deploy/haproxy.cfg');

  it('has two replicas, and a proxy that knows both and shows what the public may see', () => {
    const replicas = Object.keys(compose.services).filter((name) => name.startsWith('settled-'));
    expect(replicas).toEqual(['settled-1', 'settled-2']);
    for (const port of [8787, 8788]) {
      const servers = [...proxy.matchAll(new RegExp(`^  server (\\S+) \\1:${port}$`, 'gm'))].map(([, name]) => name);
      expect([port, servers]).toEqual([port, replicas]);
    }
    expect(proxy).toContain('deny_status 404 unless { path /hooks /return } or { path_beg /hooks/ /return/ }');
  });

  it('has a database whose address settled is given, with the password that both read, and no other secret there', () => {
    const { config, status } = start(
      'compose.postgres.yaml',
      'settled-1',
      {},
      { 'database-password': 'from-the-operator' },
    );
    expect(status).toBe(0);
    const { environment, volumes } = service(compose, 'postgres');
    const { store } = config();
    const user = environment.POSTGRES_USER;
    const database = environment.POSTGRES_DB;
    const [server] = store.engine === 'postgres' ? store.servers : [];
    expect(server?.url).toBe(`postgres://${user}:from-the-operator@postgres:5432/${database}`);
    expect(environment.POSTGRES_PASSWORD_FILE).toBe('/database-secrets/database-password');
    expect(volumes.filter((volume) => volume.includes('secrets'))).toEqual(['database-secrets:/database-secrets:ro']);
  });
});

describe('compose.sandbox.yaml', () => {
  const base = service(composed('compose.yaml'), 'settled');
  const compose = composed('compose.sandbox.yaml');
  const { environment, env_file, ports = [] } = service(compose, 'settled');

  it('has settled ask the sandbox in its own network, with its key, and tell no shop', () => {
    const sandbox = service(compose, 'sandbox');
    const option = (name: string) => sandbox.command?.[sandbox.command.indexOf(name) + 1] ?? '';
    const given = Object.entries({ ...base.environment, ...environment, SETTLED_SHOP_TOKEN_FILE: '' });
    const config = readConfig(
      Object.fromEntries(given.map(([name, text]) => [name, filled(text, { ...API, ...SHOP })])),
    );
    expect(config).toMatchObject({ apiKey: option('--api-key'), shopUrl: null, publicUrlReaches: true });
    expect(new URL(config.apiUrl ?? '').port).toBe(option('--listen').split(':')[1]);
    expect(sandbox.network_mode).toBe('service:settled');
  });

  it('touches nothing of compose.yaml: another project, other containers, no .env, no secret of the operator', () => {
    expect(parse(read('compose.sandbox.yaml'), { logLevel: 'silent' }).name).not.toBe(parse(read('compose.yaml')).name);
    const names = Object.values(compose.services).map(({ container_name }) => container_name);
    expect(names).not.toContain(base.container_name);
    expect(env_file).toEqual([]);
    const maker = service(compose, 'secrets');
    expect([maker.volumes, maker.command]).toEqual([
      ['secrets:/secrets'],
      expect.not.arrayContaining(['/host/secrets']),
    ]);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });
});

const DOCKER = spawnSync('docker', ['compose', 'version', '--short'], { encoding: 'utf8' });
const [major = 0, minor = 0] = (DOCKER.status === 0 ? DOCKER.stdout : '').split('.').map(Number);

describe('docker compose', () => {
  it.for(['compose.yaml', 'compose.postgres.yaml', 'compose.yaml compose.sandbox.yaml'])(
    'takes %s',
    (files, context) => {
      if (major * 100 + minor < 225) return context.skip('Docker Compose 2.24.4 or newer is not installed');
      // Without a .env of whoever runs this.
      const folder = testFolder();
      for (const file of files.split(' ')) cpSync(join(ROOT, file), join(folder, file));
      const args = ['compose', ...files.split(' ').flatMap((file) => ['--file', file]), 'config', '--quiet'];
      const { status, stderr } = spawnSync('docker', args, { cwd: folder, encoding: 'utf8' });
      expect([status, stderr]).toEqual([0, '']);
    },
  );
});
