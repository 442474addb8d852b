import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { readConfig } from '../../src/config/config.ts';
import { testFolder } from '../support/app.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const unit = read('deploy/settled.service');

const NO_SYSTEMD = 'systemd-analyze (Debian package systemd) is not installed';
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
/** `systemd-analyze security` says it of 10 at most; 9.6 of a unit that only names what to start. */
const EXPOSURE_MAX = 1.5;

/** The values of a key of the unit, in their order. */
const valuesOf = (key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value as string);

/** The unit as a file that starts this checkout. */
function unitFile(): string {
  const path = join(testFolder(), 'settled.service');
  writeFileSync(path, unit.replaceAll('/opt/settled/', ROOT));
  return path;
}

describe('deploy/settled.service', () => {
  it('is what systemd knows, and starts a file of the checkout', (context) => {
    if (!hasSystemd) return context.skip(NO_SYSTEMD);
    const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', unitFile()], { encoding: 'utf8' });
    expect([status, stdout, stderr]).toEqual([0, '', '']);
  });

  it('gives settled little of the machine', (context) => {
    const held = { NoNewPrivileges: 'yes', CapabilityBoundingSet: '', ProtectSystem: 'strict', PrivateUsers: 'yes' };
    for (const [key, value] of Object.entries(held)) expect([key, valuesOf(key)]).toEqual([key, [value]]);
    if (!hasSystemd) return context.skip(NO_SYSTEMD);
    const args = ['security', '--offline=true', '--no-pager', `--threshold=${EXPOSURE_MAX * 10}`, unitFile()];
    const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    expect([stdout.trim().split('\n').at(-1), status]).toEqual([expect.stringContaining('Overall exposure level'), 0]);
  });

  it('ends for good after what a restart cannot mend, and lets Node write the machine code that it runs', () => {
    expect(valuesOf('MemoryDenyWriteExecute')).toEqual(['no']);
    const { cannotOpen, notAllowed, configuration } = EXIT;
    expect(valuesOf('RestartPreventExitStatus')).toEqual([`${cannotOpen} ${notAllowed} ${configuration}`]);
  });

  it('runs with the settings and the secrets that the page has one make', () => {
    const page = read('docs/operations.md');
    const [, settings = ''] =
      /^install -m 0600 \/dev\/stdin \/etc\/settled\/env <<'END'\n(.*?)^END$/ms.exec(page) ?? [];
    const [, folder = ''] = /^secret:(.*)$/.exec(valuesOf('LoadCredential')[0] ?? '') ?? [];
    const [, made = ''] = /secrets\.mjs (.*)$/m.exec(page.replaceAll(/ \\\n +/g, ' ')) ?? [];
    expect([folder, made.split(' ')[0], valuesOf('EnvironmentFile')]).toEqual([
      '/etc/settled/secrets',
      folder,
      ['/etc/settled/env'],
    ]);
    const credentials = join(testFolder(), 'credentials');
    mkdirSync(credentials);
    const files = made.split(' ').slice(1);
    for (const file of files) {
      const name = file.replace(`${folder}/`, '');
      const args = [join(ROOT, 'bin/secrets.mjs'), credentials, join(credentials, name)];
      if (name === 'api-key') writeFileSync(join(credentials, name), 'key-1');
      else expect(spawnSync(process.execPath, args).status).toBe(0);
    }
    const shown = settings.replaceAll('/run/credentials/settled.service/secret_', `${credentials}/`);
    const environment = valuesOf('Environment').map((line) => line.split('='));
    const own = Object.fromEntries(environment.map(([name = '', ...value]) => [name, value.join('=')]));
    const config = readConfig({ ...own, ...parseEnv(shown) });
    expect(config).toMatchObject({ apiKey: 'key-1', publicUrlReaches: true, store: { engine: 'sqlite' } });
    expect([config.shopToken?.length, config.shopSecrets?.length]).toEqual([48, 1]);
    // What it writes is where it may write.
    expect(own.SETTLED_STORE).toBe(`sqlite:/var/lib/${valuesOf('StateDirectory')[0]}/settled.db`);
    expect(own.NODE_COMPILE_CACHE).toBe(`/var/cache/${valuesOf('CacheDirectory')[0]}`);
    expect(existsSync(join(ROOT, 'bin/settled.mjs'))).toBe(true);
  });
});
