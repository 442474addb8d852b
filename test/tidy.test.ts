import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LINES_MAX = 300;

type Import = { from: string; to: string; typeOnly: boolean };

const files = ['src', 'test', 'bench'].flatMap((folder) => sourceFiles(join(ROOT, folder)));
const sources = files.filter((file) => file.startsWith('src/'));
const imports = sources.flatMap(importsOf);
const sandboxFiles = sourceFiles(join(ROOT, 'sandbox'));
const demoFiles = sourceFiles(join(ROOT, 'demo'));

/** Leaves that every room may use. */
const LEAVES = ['src/fault.ts', 'src/json.ts', 'src/work/clock.ts', 'src/observe/log.ts'];

/** For each room: the rooms and files whose code it may import, and those of which it may import types. */
const MAY_IMPORT: Record<string, { code: string[]; types: string[] }> = {
  'src/domain/': { code: ['src/domain/'], types: [] },
  'src/paylink/': { code: ['src/domain/', 'src/paylink/'], types: [] },
  'src/work/': { code: ['src/domain/retry.ts', 'src/work/'], types: [] },
  'src/observe/': { code: ['src/observe/', 'src/domain/'], types: ['src/store/'] },
  'src/store/sqlite/': { code: ['src/store/', 'src/domain/'], types: [] },
  'src/store/': { code: ['src/store/', 'src/domain/'], types: [] },
  'src/receive/': { code: ['src/receive/', 'src/domain/', 'src/paylink/wire.ts', 'src/work/'], types: ['src/store/'] },
  'src/settle/': {
    code: ['src/settle/', 'src/domain/', 'src/paylink/wire.ts', 'src/paylink/reading.ts', 'src/work/'],
    types: ['src/store/'],
  },
  'src/links/': { code: ['src/links/', 'src/domain/', 'src/paylink/', 'src/work/'], types: ['src/store/'] },
  'src/reconcile/': { code: ['src/reconcile/', 'src/domain/', 'src/paylink/', 'src/work/'], types: ['src/store/'] },
  'src/notify/': { code: ['src/notify/', 'src/domain/', 'src/work/', 'src/addresses.ts'], types: ['src/store/'] },
  'src/http/': { code: ['src/http/', 'src/receive/', 'src/settle/'], types: ['src/store/', 'src/settings.ts'] },
  'src/api/': {
    code: [
      'src/api/',
      'src/http/',
      'src/domain/',
      'src/receive/',
      'src/paylink/service.ts',
      'src/paylink/wire.ts',
      'src/release.ts',
      'src/work/',
    ],
    types: [
      'src/store/',
      'src/observe/',
      'src/links/',
      'src/reconcile/',
      'src/paylink/',
      'src/rotation.ts',
      'src/clock_steps.ts',
    ],
  },
};

describe('the house', () => {
  it.each(Object.entries(MAY_IMPORT))('%s imports only what it may', (room, { code, types }) => {
    const mine = imports.filter(({ from }) => roomOf(from) === room);
    const forbidden = mine.filter(({ to, typeOnly }) => {
      const allowed = [...code, ...LEAVES, ...(typeOnly ? types : [])];
      return to.startsWith('src/') && !allowed.some((place) => to.startsWith(place));
    });
    expect(forbidden).toEqual([]);
  });

  it('keeps the domain free of packages and of Node', () => {
    const outside = imports.filter(({ from, to }) => from.startsWith('src/domain/') && !to.startsWith('src/'));
    expect(outside).toEqual([]);
  });

  it('keeps the stages apart: they meet in rows', () => {
    const stages = ['links', 'receive', 'reconcile', 'settle', 'notify'].map((stage) => `src/${stage}/`);
    const crossings = imports.filter(({ from, to }) => {
      const [here, there] = [from, to].map((place) => stages.find((stage) => place.startsWith(stage)));
      return here !== undefined && there !== undefined && here !== there;
    });
    expect(crossings).toEqual([]);
  });

  it('keeps product and sandbox apart', () => {
    expect(imports.filter(({ to }) => to.includes('sandbox/'))).toEqual([]);
    const outside = sandboxFiles
      .flatMap(importsOf)
      .filter(({ to }) => to.startsWith('..') || /^(src|test|bench|prove|bin)\//.test(to));
    expect(outside).toEqual([]);
  });

  it('keeps the demo apart from what it shows: it speaks HTTP', () => {
    expect(imports.filter(({ to }) => /(^|\/)demo\//.test(to))).toEqual([]);
    const outside = demoFiles.flatMap(importsOf).filter(({ to }) => !/^(demo\/|node:|express$)/.test(to));
    expect(outside).toEqual([]);
  });

  it('has files of at most 300 lines', () => {
    const long = [...sources, ...sandboxFiles, ...demoFiles].filter(
      (file) => text(file).trimEnd().split('\n').length > LINES_MAX,
    );
    expect(long).toEqual([]);
  });

  it('has functions of at most 70 lines, held by the linter', () => {
    const { linter } = JSON.parse(text('biome.json'));
    expect(linter.rules.complexity.noExcessiveLinesPerFunction).toMatchObject({
      level: 'error',
      options: { maxLines: 70 },
    });
  });

  it('takes time, timers and chance from arguments', () => {
    const users = sources.filter((file) => /\b(Date\.now|setTimeout|setInterval|Math\.random)\b/.test(text(file)));
    expect(users.sort()).toEqual(['src/cli/serve.ts', 'src/work/clock.ts']);
    expect(text('src/cli/serve.ts')).not.toMatch(/Date\.now|setTimeout|setInterval/);
  });

  it('reads the environment in one file', () => {
    expect(sources.filter((file) => text(file).includes('process.env'))).toEqual(['src/environment.ts']);
  });

  it('keeps SQL with the engines', () => {
    const users = sources.filter((file) => /\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b/.test(text(file)));
    const elsewhere = users.filter((file) => !/^src\/store\/\w+\//.test(file));
    expect(elsewhere).toEqual([]);
  });

  it('has no body parser and no lenient HTTP parser on the way of a delivery', () => {
    const suspicious = sources.filter((file) => /insecureHTTPParser|express\.(raw|text|urlencoded)/.test(text(file)));
    expect(suspicious).toEqual([]);
    const parsers = sources.filter((file) => text(file).includes('express.json'));
    expect(parsers).toEqual(['src/api/router.ts']);
  });

  it('compares signatures and tokens in constant time only', () => {
    const suspicious = ['src/receive/', 'src/settle/', 'src/api/auth.ts'].flatMap((place) =>
      sources.filter(
        (file) =>
          file.startsWith(place) && /\b(mac|signature|token|presented)\b\s*[!=]== (?!null|undefined)/i.test(text(file)),
      ),
    );
    expect(suspicious).toEqual([]);
  });

  it('installs without running scripts, from a lockfile that names no host', () => {
    expect(text('.npmrc')).toContain('ignore-scripts=true');
    expect(JSON.parse(text('package.json')).allowScripts).toEqual({ 'better-sqlite3': false });
    expect(text('package-lock.json')).not.toMatch(/"resolved": "http/);
  });
});

function roomOf(file: string): string | undefined {
  return Object.keys(MAY_IMPORT).find((room) => file.startsWith(room));
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

function text(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function importsOf(file: string): Import[] {
  const pattern = /^(?:import|export) (type )?(?:[^;]*? from )?'([^']+)';/gms;
  return [...text(file).matchAll(pattern)].map((match) => {
    const [statement, type, specifier = ''] = match;
    const to = specifier.startsWith('.') ? join(dirname(file), specifier) : specifier;
    const named =
      /\{([^}]*)\}/s
        .exec(statement)?.[1]
        ?.split(',')
        .filter((name) => name.trim() !== '') ?? [];
    const typeOnly = type !== undefined || (named.length > 0 && named.every((name) => name.trim().startsWith('type ')));
    return { from: file, to, typeOnly };
  });
}
