import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { spawnProgram } from '../support/process.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const own = JSON.parse(read('package.json'));

/** Files that a checkout may have beside settled's, and no package. */
const STRANGERS = ['deploy/.env', 'deploy/shop.db', 'deploy/secret.yaml', 'demo/secret.mts'];

function withStrangers(work: () => void): void {
  const placed = STRANGERS.map((file) => join(ROOT, dirname(file), `of-a-test-${process.pid}`, basename(file)));
  try {
    for (const file of placed) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, "export const secret = 'canary';\n");
    }
    work();
  } finally {
    for (const file of placed) rmSync(dirname(file), { recursive: true, force: true });
  }
}

/** A folder in which the package is installed as npm installs it, and where npm would put it. */
function install(): { folder: string; installed: string } {
  const folder = mkdtempSync(join(tmpdir(), 'settled-package-test-'));
  const modules = join(folder, 'node_modules');
  const installed = join(modules, own.name);
  mkdirSync(installed, { recursive: true });
  const environment = { ...process.env, TMPDIR: folder };
  const made = execFileSync(process.execPath, ['release/package.ts', '--to', folder], {
    cwd: ROOT,
    encoding: 'utf8',
    env: environment,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  expect(made).toMatch(new RegExp(`^[0-9a-f]{64} {2}\\S+/settled-${own.version}\\.tgz\\n$`));
  execFileSync('tar', ['xf', join(folder, `settled-${own.version}.tgz`), '-C', installed, '--strip-components=1']);
  const production = Object.keys(own.dependencies);
  for (const name of production) symlinkSync(join(ROOT, 'node_modules', name), join(modules, name));
  return { folder, installed };
}

/** In a checkout git says which files are settled's. */
const canPack = !existsSync(join(ROOT, '.git')) || spawnSync('git', ['--version']).error === undefined;
const WHY_NOT = canPack ? '' : ': skipped, git is not installed, which says what of a checkout is packed';

describe.skipIf(!canPack)(`the package that npm run package makes${WHY_NOT}`, () => {
  let folder: string;
  let installed: string;
  beforeAll(() => {
    withStrangers(() => {
      ({ folder, installed } = install());
    });
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const settled = (...args: string[]) =>
    execFileSync(process.execPath, [join(installed, 'bin/settled.mjs'), ...args], { cwd: folder, encoding: 'utf8' });

  it('says what it is, and what it needs', () => {
    const { name, version, bin, engines, dependencies, optionalDependencies, ...others } = JSON.parse(
      readFileSync(join(installed, 'package.json'), 'utf8'),
    );
    expect({ name, version, bin, engines, dependencies, optionalDependencies }).toEqual({
      name: own.name,
      version: own.version,
      bin: own.bin,
      engines: own.engines,
      dependencies: own.dependencies,
      optionalDependencies: own.optionalDependencies,
    });
    expect(Object.keys(others)).not.toContain('devDependencies');
    expect('./client' in others.exports).toBe(existsSync(join(ROOT, 'client/settled.ts')));
    for (const target of Object.values(others.exports).flatMap((one) =>
      typeof one === 'string' ? one : Object.values(one as object),
    ))
      expect(statSync(join(installed, target)).isFile()).toBe(true);
    expect(statSync(join(installed, bin.settled)).mode & 0o777).toBe(0o755);
    expect(settled('--version')).toBe(`settled ${own.version} (Node ${process.versions.node})\n`);
  });

  it('has JavaScript and types for each file of TypeScript, and the other files beside them', () => {
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    for (const room of ['src', 'sandbox', 'demo']) {
      const sources = readdirSync(join(ROOT, room), { recursive: true, encoding: 'utf8' })
        .map((file) => join(room, file))
        .filter((file) => statSync(join(ROOT, file)).isFile());
      const expected = sources.flatMap((file) =>
        file.endsWith('.ts') ? [file.replace(/ts$/, 'js'), file.replace(/ts$/, 'd.ts')] : [file],
      );
      const found = files.filter((file) => file.startsWith(`${room}/`) && statSync(join(installed, file)).isFile());
      expect(found.sort()).toEqual(expected.sort());
    }
    expect(files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'CHANGELOG.md', 'docs/upgrade.md']));
  });

  it('has nothing that git does not know', ({ skip }) => {
    skip(!existsSync(join(ROOT, '.git')), 'this is no checkout');
    const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
    expect(files.filter((file) => file.includes('of-a-test'))).toEqual([]);
    expect(files).toContain('examples/express/shop.ts');
  });

  it('is of the same bytes wherever git writes line ends of its own', ({ skip }) => {
    skip(!existsSync(join(ROOT, '.git')), 'this is no checkout');
    const asked = {
      cwd: ROOT,
      encoding: 'utf8',
      input: ['README.md', 'bin/settled.mjs', 'src/fault.ts'].join('\n'),
    } as const;
    const said = execFileSync('git', ['-c', 'safe.directory=*', 'check-attr', '--stdin', 'text'], asked);
    expect(
      said
        .trim()
        .split('\n')
        .map((line) => line.split(': ').at(-1)),
    ).toEqual(['unset', 'unset', 'unset']);
  });

  it('plays the demo below node_modules: settled, the sandbox and their threads', () => {
    const { steps } = JSON.parse(settled('demo', '--once', '--json'));
    expect(steps).toHaveLength(7);
    expect(steps.at(-1)).toMatchObject({ state: 'paid' });
  });

  it('prints commands that call it again as npx did', async () => {
    const nextCommand = async () => {
      const sandbox = [process.execPath, join(installed, 'bin/settled.mjs'), 'sandbox', '--listen', '127.0.0.1:0'];
      return await spawnProgram(sandbox, { npm_lifecycle_event: 'npx' }).line(/^ {2}More: /);
    };
    expect(await nextCommand()).toContain('More: npx settled sandbox help,');
    const noted = join(folder, 'package.json');
    writeFileSync(noted, JSON.stringify({ _npx: { packages: [`./settled-${own.version}.tgz`] } }));
    expect(await nextCommand()).toContain(`More: npx --yes ./settled-${own.version}.tgz sandbox help,`);
    rmSync(noted);
  });
});

it.skipIf(!existsSync(join(ROOT, '.git')))('says in one sentence that packing a checkout needs git', () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['release/package.ts'], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: join(ROOT, 'release') },
  });
  expect([status, stdout]).toEqual([69, '']);
  expect(stderr).toMatch(/^In a checkout git says .* Install git\.\n$/);
});

describe('what an installation for production takes', () => {
  it('has the licenses that docs/operations.md lists', () => {
    type Locked = { license?: string; dev?: boolean; link?: boolean };
    const { '': root, ...locked } = JSON.parse(read('package-lock.json')).packages as Record<string, Locked>;
    const needed = Object.values(locked).filter(({ dev, link }) => dev !== true && link !== true);
    const [, listed = ''] = /^The licenses of all of them: (.*)\. A test/m.exec(read('docs/operations.md')) ?? [];
    expect(needed.length).toBeGreaterThan(100);
    expect([...new Set(needed.map(({ license }) => license))].sort()).toEqual(listed.split(/, | and /).sort());
  });

  it('leaves out what only tests start', () => {
    const { packages } = JSON.parse(read('package-lock.json'));
    const tools = Object.keys(JSON.parse(read('test/tools/package.json')).optionalDependencies);
    const kept = tools.filter((name) => packages[`node_modules/${name}`]?.dev !== true);
    expect([tools.length, kept]).toEqual([3, []]);
  });
});

describe('the image', () => {
  it('is labelled with this release', () => {
    const labels = [...read('Dockerfile').matchAll(/org\.opencontainers\.image\.(\w+)="([^"]+)"/g)];
    expect(Object.fromEntries(labels.map(([, name, value]) => [name, value]))).toMatchObject({
      title: own.name,
      version: own.version,
      licenses: own.license,
    });
  });
});
