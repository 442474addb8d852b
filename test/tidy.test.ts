import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const LINES_MAX = 300;
const LINES_MIN = 40;
/** What of the client is written by hand: it is one file, because shops copy it. */
const CLIENT_LINES_MAX = 400;
const SAME_NAME_MAX = 3;
const MEDIAN_LINES_MIN = 95;

/**
 * Counts of the house, as `COUNTS` below has them. They only fall: a change that lowers a count lowers its limit as well.
 * A feature that needs more pays by removing something, or its commit says its price.
 */
const LIMITS = {
  files: 299,
  lines: 43_607,
  linesMissingInMedian: 0,
  shortFiles: 1,
  filesOfNoRoom: 0,
  filesInImportCircles: 0,
  basenamesInTooManyRooms: 0,
  typeNamesExportedTwice: 0,
  statementsOfBothEngines: 0,
  usersOfTheSystemClock: 0,
  sentencesInDomainAndStore: 12,
  linesOfTests: 70_774,
  linesOfProofs: 11_805,
  linesOfSandbox: 6_060,
  linesOfDocs: 9_174,
  filesToAPaidOrder: 15,
  placesOfAnAttentionKind: 4,
};

/** So much a count may be below its limit: a twentieth, so that two changes at once need not agree on a figure. */
const SLACK = 0.05;

/** Short for a good reason: each is all that there is to say about what its name says. */
const SHORT_FILES = ['src/release.ts', 'src/cli/main.ts', 'src/api/shared_loads.ts'];

/** Who makes the clock of this machine, or starts what needs it. */
const MAY_USE_SYSTEM_CLOCK = ['src/app/', 'src/cli/', 'src/work/clock.ts', 'src/store/sqlite/thread.ts'];

/** Messages of faults alone, some of them put together from parts. */
const FAULT_FILES = [
  'address',
  'contract',
  'keys',
  'open',
  'postgres/connection',
  'postgres/faults',
  'postgres/server_faults',
  'sqlite/faults',
].map((name) => `src/store/${name}.ts`);

/** `whenNeeded`: by `import()`, while it runs. */
type Import = { from: string; to: string; typeOnly: boolean; whenNeeded: boolean };

const files = ['src', 'test', 'bench'].flatMap((folder) => sourceFiles(join(ROOT, folder)));
const sources = files.filter((file) => file.startsWith('src/'));
const basenames = sources.map((file) => basename(file));
const lineCounts = sources.map(lines);
const imports = sources.flatMap(importsOf);
const importsByFile = new Map(sources.map((file) => [file, importsOf(file).map(({ to }) => to)]));
const sandboxFiles = sourceFiles(join(ROOT, 'sandbox'));
const demoFiles = sourceFiles(join(ROOT, 'demo'));
const exampleFiles = sourceFiles(join(ROOT, 'examples'));

const OUTER_ROOMS = ['sandbox', 'demo', 'bench', 'prove', 'test/support'];
const outerFiles = OUTER_ROOMS.flatMap((room) => sourceFiles(join(ROOT, room)));
const outerImports = new Map(outerFiles.map((file) => [file, importsOf(file).map(({ to }) => to)]));

/** Short for a good reason: what starts a process, a table of types, and what nothing else would hold. */
const SHORT_OUTER_FILES = [
  'sandbox/context.ts',
  'sandbox/control/requests.ts',
  'sandbox/main.ts',
  'demo/sweeper.ts',
  'prove/client.ts',
  'prove/harness/chance.ts',
  'test/support/markdown.ts',
  'test/support/readings.ts',
];

/** Leaves that every room may use. */
const LEAVES = ['fault', 'json', 'release', 'vocabulary', 'work/clock', 'observe/log'].map((name) => `src/${name}.ts`);

/** What makes files durable, and knows whether a database is there. */
const SQLITE_FILES = ['file', 'faults', 'identity'].map((name) => `src/store/sqlite/${name}.ts`);

/** Requests to addresses that an operator configured. */
const SENDING = ['src/http/target.ts', 'src/http/peer.ts'];

/** For each room: the rooms and files whose code it may import, and those of which it may import types. */
const MAY_IMPORT: Record<string, { code: string[]; types: string[] }> = {
  'src/domain/': { code: ['src/domain/'], types: [] },
  'src/paylink/': { code: ['src/domain/', 'src/paylink/'], types: [] },
  'src/work/': { code: ['src/work/'], types: [] },
  'src/observe/': { code: ['src/observe/', 'src/domain/'], types: ['src/store/', 'src/secrets/'] },
  'src/terminal/': { code: ['src/terminal/'], types: [] },
  'src/config/': {
    code: ['src/config/', 'src/domain/', 'src/paylink/events.ts', 'src/store/address.ts', 'src/terminal/failure.ts'],
    types: ['src/access/proxy.ts'],
  },
  'src/secrets/': {
    // Keys in files lie beside a database of SQLite, and are made as durably as it is.
    code: ['src/secrets/', 'src/work/', 'src/store/address.ts', ...SQLITE_FILES],
    types: ['src/store/'],
  },
  'src/store/sqlite/': { code: ['src/store/', 'src/domain/', 'src/work/memory.ts'], types: [] },
  'src/store/': { code: ['src/store/', 'src/domain/', 'src/work/latest.ts', 'src/work/signal.ts'], types: [] },
  'src/receive/': {
    code: ['src/receive/', 'src/domain/', 'src/paylink/events.ts', 'src/work/'],
    types: ['src/store/', 'src/secrets/'],
  },
  'src/settle/': {
    code: ['src/settle/', 'src/domain/', 'src/paylink/events.ts', 'src/paylink/reading.ts', 'src/work/'],
    types: ['src/store/', 'src/secrets/'],
  },
  'src/links/': {
    code: ['src/links/', 'src/domain/', 'src/paylink/', 'src/work/'],
    types: ['src/store/', 'src/secrets/'],
  },
  'src/contact/': {
    code: ['src/contact/', 'src/domain/', 'src/paylink/', 'src/links/service_secret.ts', 'src/work/'],
    types: ['src/cli/connection.ts'],
  },
  'src/reconcile/': { code: ['src/reconcile/', 'src/domain/', 'src/paylink/', 'src/work/'], types: ['src/store/'] },
  'src/notify/': { code: ['src/notify/', 'src/domain/', 'src/work/', ...SENDING], types: ['src/store/'] },
  'src/alert/': {
    code: ['src/alert/', 'src/domain/', 'src/explain/', 'src/work/', 'src/config/addresses.ts', ...SENDING],
    types: ['src/store/', 'src/config/'],
  },
  'src/http/': {
    code: ['src/http/', 'src/receive/', 'src/settle/', 'src/config/addresses.ts'],
    types: ['src/store/', 'src/config/'],
  },
  'src/explain/': {
    code: ['src/explain/', 'src/domain/', 'src/receive/diagnosis_words.ts'],
    types: ['src/store/', 'src/receive/diagnosis.ts', 'src/paylink/events.ts'],
  },
  'src/access/': { code: ['src/access/', 'src/domain/'], types: ['src/store/', 'src/work/'] },
  'src/api/': {
    code: [
      'src/api/',
      'src/access/',
      'src/explain/',
      'src/http/',
      'src/domain/',
      'src/receive/',
      'src/paylink/service.ts',
      'src/paylink/events.ts',
      'src/paylink/reading.ts',
      'src/work/',
    ],
    types: [
      'src/store/',
      'src/secrets/',
      'src/observe/',
      'src/links/',
      'src/alert/',
      'src/reconcile/',
      'src/paylink/',
      'src/app/clock_steps.ts',
    ],
  },
  'src/console/': {
    code: [
      'src/console/',
      'src/api/',
      'src/access/',
      'src/explain/',
      'src/http/',
      'src/domain/',
      'src/terminal/screen.ts',
      'src/work/',
    ],
    types: ['src/store/'],
  },
  'src/cli/': {
    code: [
      'src/cli/',
      'src/config/',
      'src/terminal/',
      'src/domain/',
      'src/explain/',
      'src/receive/',
      'src/work/',
      'src/store/address.ts',
    ],
    types: ['src/store/', 'src/http/', 'src/api/', 'src/app/', 'src/contact/'],
  },
  'src/app/': { code: ['src/'], types: [] },
};

const COUNTS: Record<keyof typeof LIMITS, () => number> = {
  files: () => sources.length,
  lines: () => sum(lineCounts),
  linesMissingInMedian: () => MEDIAN_LINES_MIN - Math.min(MEDIAN_LINES_MIN, median(lineCounts)),
  shortFiles: () => sources.filter((file) => lines(file) < LINES_MIN && !SHORT_FILES.includes(file)).length,
  filesOfNoRoom: () => sources.filter((file) => roomOf(file) === undefined && !LEAVES.includes(file)).length,
  filesInImportCircles: () => sources.filter((file) => importedFrom(file).has(file)).length,
  basenamesInTooManyRooms: () => repeated(basenames, SAME_NAME_MAX).length,
  typeNamesExportedTwice: () => repeated(sources.flatMap(exportedTypes), 1).length,
  statementsOfBothEngines: () => repeated([...statementsOf('sqlite'), ...statementsOf('postgres')], 1).length,
  usersOfTheSystemClock: () =>
    sources.filter((file) => text(file).includes('systemClock') && !mayUseClock(file)).length,
  sentencesInDomainAndStore: () => sources.flatMap(sentencesOf).length,
  linesOfTests: () => linesIn('test'),
  linesOfProofs: () => linesIn('prove') + linesIn('bench'),
  linesOfSandbox: () => linesIn('sandbox'),
  linesOfDocs: () => sum(['README.md', ...pagesIn('docs')].map(lines)),
  // As docs/source.md tells it.
  filesToAPaidOrder: () => {
    const [walk = ''] = text('docs/source.md')
      .split('\n## ')
      .filter((section) => section.startsWith('One delivery'));
    const steps = walk
      .slice(0, walk.indexOf('INSERT_SETTLEMENT') + 200)
      .split('\n')
      .slice(0, -1);
    return new Set(steps.flatMap((step) => step.match(/`src\/[^`]+`/g) ?? [])).size;
  },
  // Of a kind that only its own verb raises: where source and pages name it.
  placesOfAnAttentionKind: () =>
    [...sources, ...pagesIn('docs')].filter((file) => /\bquote_reading_doubtful\b/.test(text(file))).length,
};

function linesIn(folder: string): number {
  return sum(sourceFiles(join(ROOT, folder)).map(lines));
}

function pagesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join(folder, file));
}

describe('the house', () => {
  it.each(Object.entries(MAY_IMPORT))('%s imports only what it may', (room, { code, types }) => {
    // A command that works on this machine's own files loads what it needs of other rooms when it runs.
    const mine = imports.filter(
      ({ from, whenNeeded }) => roomOf(from) === room && !(whenNeeded && room === 'src/cli/'),
    );
    const forbidden = mine.filter(({ to, typeOnly }) => {
      const allowed = [...code, ...LEAVES, ...(typeOnly ? types : [])];
      return to.startsWith('src/') && !allowed.some((place) => to.startsWith(place));
    });
    expect(forbidden).toEqual([]);
  });

  it.each(Object.entries(COUNTS))('keeps its limit of %s, which follows the count down', (name, countNow) => {
    const limit = LIMITS[name as keyof typeof LIMITS];
    const count = countNow();
    expect(count).toBeLessThanOrEqual(limit);
    expect(count, 'lower the limit in LIMITS').toBeGreaterThanOrEqual(Math.floor(limit * (1 - SLACK)));
  });

  it('is as large as the README says, and so are the rooms that have to be trusted with money', () => {
    const [, rooms = '', trusted = '', whole = ''] =
      /read (`src\/.*?`): ([\d ]+) of the ([\d ]+)\s+lines/s.exec(text('README.md')) ?? [];
    const folders = [...rooms.matchAll(/`(src\/[^`]+)`/g)].map(([, folder]) => folder as string);
    const linesOf = (some: readonly string[]) =>
      sum(sources.filter((file) => some.some((folder) => file.startsWith(folder))).map(lines));
    const rounded = (count: number) => Math.round(count / 500) * 500;
    expect([trusted, whole].map((count) => Number(count.replaceAll(' ', '')))).toEqual([
      rounded(linesOf(folders)),
      rounded(linesOf(['src/'])),
    ]);
  });

  it('loads none of Node that only an import of all its http names needs', () => {
    const all = /import (?!type)[^;]* from 'node:https?'/;
    expect(sources.filter((file) => all.test(text(file)))).toEqual([]);
  });

  it('keeps the domain free of packages and of Node', () => {
    const outside = imports.filter(({ from, to }) => from.startsWith('src/domain/') && !to.startsWith('src/'));
    expect(outside).toEqual([]);
  });

  it('keeps the stages apart: they meet in rows', () => {
    const stages = ['links', 'receive', 'reconcile', 'settle', 'notify', 'alert'].map((stage) => `src/${stage}/`);
    const crossings = imports.filter(({ from, to }) => {
      const [here, there] = [from, to].map((place) => stages.find((stage) => place.startsWith(stage)));
      return here !== undefined && there !== undefined && here !== there;
    });
    expect(crossings).toEqual([]);
  });

  it('keeps product and sandbox apart, but for how commands are read and shown', () => {
    expect(imports.filter(({ to }) => to.includes('sandbox/'))).toEqual([]);
    const outside = sandboxFiles
      .flatMap(importsOf)
      .filter(({ to }) => to.startsWith('..') || /^(src\/(?!terminal\/)|test|bench|prove|bin)/.test(to));
    expect(outside).toEqual([]);
  });

  it('keeps the demo apart from what it shows: it speaks HTTP', () => {
    expect(imports.filter(({ to }) => /(^|\/)demo\//.test(to))).toEqual([]);
    const outside = demoFiles
      .flatMap(importsOf)
      .filter(({ to }) => !/^(demo\/|src\/terminal\/|node:|express$)/.test(to));
    expect(outside).toEqual([]);
  });

  it('keeps the client one file that needs nothing but Node, most of it types from the document', () => {
    expect(sourceFiles(join(ROOT, 'client'))).toEqual(['client/settled.ts']);
    expect(importsOf('client/settled.ts').map(({ to }) => to)).toEqual(['node:crypto', 'node:timers/promises']);
    const [byHand = '', generated] = text('client/settled.ts').split('// Below: generated');
    expect(generated).toBeDefined();
    expect(byHand.split('\n').length).toBeLessThanOrEqual(CLIENT_LINES_MAX);
  });

  it('keeps the examples apart from what they use: they speak HTTP, by the client if there is one', () => {
    const ours = exampleFiles.flatMap(importsOf).filter(({ to }) => !/^(node:|express$|fastify$|pg$)/.test(to));
    expect(new Set(ours.map(({ to }) => to))).toEqual(new Set(['client/settled.ts']));
    expect(imports.filter(({ to }) => /^(client|examples)\//.test(to))).toEqual([]);
  });

  it('has files of at most 300 lines', () => {
    const long = [...sources, ...sandboxFiles, ...demoFiles, ...exampleFiles].filter((file) => lines(file) > LINES_MAX);
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
    expect(sources.filter((file) => text(file).includes('process.env'))).toEqual(['src/config/environment.ts']);
  });

  it('keeps SQL with the engines', () => {
    const users = sources.filter((file) => /\b(SELECT|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b/.test(text(file)));
    const elsewhere = users.filter((file) => !/^src\/store\/\w+\//.test(file));
    expect(elsewhere).toEqual([]);
  });

  it('starts every verb that it calls: a generator called as a statement would do nothing', () => {
    const store = sources.filter((file) => file.startsWith('src/store/')).map((file) => withoutComments(text(file)));
    const namesIn = (code: string, pattern: RegExp) =>
      [...code.matchAll(pattern)].map((found) => found.slice(1).join(''));
    const generators = new Set(
      store.flatMap((code) => namesIn(code, /function\* ?(\w+)\(|^ +\*(\w+)\(|(\w+)(?:: [^=]+)? = function\*/gm)),
    );
    expect(generators.size).toBeGreaterThan(60);
    const dropped = store.flatMap((code) => {
      const plain = new Set(namesIn(code, /function (\w+)\(/g));
      return namesIn(code, /(?<=[;{})]\s+|\belse\s+|&&\s+)(?:\w+\.)?(\w+)\(\s*tx\b/g).filter(
        (name) => generators.has(name) && !plain.has(name),
      );
    });
    expect(dropped).toEqual([]);
  });

  it('has no body parser and no lenient HTTP parser on the way of a delivery', () => {
    const suspicious = sources.filter((file) => /insecureHTTPParser|express\.(raw|text|urlencoded)/.test(text(file)));
    expect(suspicious).toEqual(['src/api/body.ts']);
    const parsers = sources.filter((file) => text(file).includes('express.json'));
    expect(parsers).toEqual(['src/api/body.ts']);
  });

  it('compares signatures and tokens in constant time only', () => {
    const suspicious = ['src/receive/', 'src/settle/', 'src/access/'].flatMap((place) =>
      sources.filter(
        (file) =>
          file.startsWith(place) && /\b(mac|signature|token|presented)\b\s*[!=]== (?!null|undefined)/i.test(text(file)),
      ),
    );
    expect(suspicious).toEqual([]);
  });

  it('runs at length every test that says so, or how often it repeats something', () => {
    const [, listed = ''] = /const REPEATING = \[(.*?)\];/s.exec(text('vitest.config.ts')) ?? [];
    const globs = [...listed.matchAll(/'([^']+)'/g)].map(
      ([, glob = '']) =>
        new RegExp(
          `^${glob
            .replaceAll('.', '\\.')
            .replaceAll('*', '[^/]*')
            .replace(/\{(.*)\}/, (_, names: string) => `(${names.replaceAll(',', '|')})`)}$`,
        ),
    );
    const repeating = files.filter(
      (file) =>
        file.endsWith('.test.ts') && /(?<!function )\btimes\(|\bitAtLength[.(]|\.each\(LOOKS\)/.test(text(file)),
    );
    expect(repeating.length).toBeGreaterThan(10);
    expect(repeating.filter((file) => !globs.some((glob) => glob.test(file)))).toEqual([]);
  });

  it('installs without running scripts, from a lockfile that names no host', () => {
    expect(text('.npmrc')).toContain('ignore-scripts=true');
    expect(JSON.parse(text('package.json')).allowScripts).toEqual({ 'better-sqlite3': false });
    expect(text('package-lock.json')).not.toMatch(/"resolved": "http/);
  });
});

describe('the rooms around the product', () => {
  it.each(OUTER_ROOMS)('%s has no import circle, types included', (room) => {
    const inCircles = outerFiles.filter((file) => file.startsWith(`${room}/`) && isImportedByItself(file));
    expect(inCircles).toEqual([]);
  });

  it.each(OUTER_ROOMS)('%s has files of 40 to 300 lines', (room) => {
    const mine = outerFiles.filter((file) => file.startsWith(`${room}/`) && !SHORT_OUTER_FILES.includes(file));
    expect(mine.filter((file) => lines(file) < LINES_MIN || lines(file) > LINES_MAX)).toEqual([]);
  });

  it('has no exception for a file that needs none', () => {
    expect(SHORT_OUTER_FILES.filter((file) => lines(file) >= LINES_MIN)).toEqual([]);
  });
});

/** Whether a file needs itself through others of its room. */
function isImportedByItself(file: string): boolean {
  const seen = new Set<string>();
  const next = outerImports.get(file)?.slice() ?? [];
  for (let from = next.pop(); from !== undefined; from = next.pop()) {
    if (from === file) return true;
    if (seen.has(from)) continue;
    seen.add(from);
    next.push(...(outerImports.get(from) ?? []));
  }
  return false;
}

function roomOf(file: string): string | undefined {
  return Object.keys(MAY_IMPORT).find((room) => file.startsWith(room));
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(
      (entry) =>
        entry.isFile() && entry.name.endsWith('.ts') && !relative(ROOT, entry.parentPath).includes('node_modules'),
    )
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

function text(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8');
}

function lines(file: string): number {
  return text(file).trimEnd().split('\n').length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? 0;
}

/** What is in the list more than so many times. */
function repeated(names: readonly string[], timesMax: number): string[] {
  return [...new Set(names)].filter((name) => names.filter((other) => other === name).length > timesMax);
}

function exportedTypes(file: string): string[] {
  return [...text(file).matchAll(/^export (?:type|interface|(?:abstract )?class) (\w+)/gm)].map(
    ([, name = '']) => name,
  );
}

/** Every file that a file needs, directly or through others, types included. */
function importedFrom(file: string): Set<string> {
  const found = new Set<string>();
  const next = [file];
  for (let from = next.pop(); from !== undefined; from = next.pop()) {
    for (const to of importsByFile.get(from) ?? []) {
      if (!found.has(to)) next.push(to);
      found.add(to);
    }
  }
  return found;
}

/** The statements that an engine has, each normalised: what two engines both have could stand in one place. */
function statementsOf(engine: string): Set<string> {
  const code = sources
    .filter((file) => file.startsWith(`src/store/${engine}/`))
    .map((file) => withoutComments(text(file)));
  const texts = code.flatMap((one) => [...one.matchAll(/`([^`]*)`|'([^'\n]*)'|"([^"\n]*)"/g)]);
  const statements = texts
    .map(([, template, single, double]) => template ?? single ?? double ?? '')
    .filter((one) => /^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|WITH)\b/.test(one));
  return new Set(statements.map(normalised));
}

/** The text between quotes of one kind; a template's without what it puts together. */
const LITERAL = /`([^`]*)`|'((?:[^'\\\n]|\\.)*)'|"([^"\n]*)"/g;
const SQL_WORD = /\b(?:SELECT|INSERT|UPDATE|DELETE|WHERE|FROM|AND|CREATE|SET|BEGIN|AS|JOIN|ORDER)\b/;
const SIX_WORDS = /[a-z]{2,}(?: [\w'"$,;:(){}.-]+){5,}/;

/** Six words in a row in a file of domain or store, SQL and messages of faults excepted: what only a person reads. */
function sentencesOf(file: string): string[] {
  if (!/^src\/(?:domain|store)\//.test(file) || FAULT_FILES.includes(file)) return [];
  const literals = [...withoutFaults(withoutComments(text(file))).matchAll(LITERAL)];
  return literals
    .map(([, template, single, double]) => template ?? single ?? double ?? '')
    .filter((literal) => SIX_WORDS.test(literal) && !SQL_WORD.test(literal));
}

/** Code without what faults and errors are made of. */
function withoutFaults(code: string): string {
  const found = /\b(?:new \w*(?:Fault|Error)|terminalFault|transientFault|stray|foreign|corrupt|newer)\(/.exec(code);
  if (found === null) return code;
  let end = found.index + found[0].length;
  for (let depth = 1; depth > 0 && end < code.length; end++) {
    if (code[end] === '(') depth++;
    if (code[end] === ')') depth--;
  }
  return code.slice(0, found.index) + withoutFaults(code.slice(end));
}

function normalised(statement: string): string {
  return statement
    .replace(/::\w+(\[\])?/g, '')
    .replace(/\+?\?|@\w+|\$\d+/g, '?')
    .replace(/\s+/g, ' ')
    .trim()
    .toLowerCase();
}

function withoutComments(code: string): string {
  return code.replace(/\/\*.*?\*\//gs, '').replace(/^\s*\/\/.*$/gm, '');
}

function mayUseClock(file: string): boolean {
  return MAY_USE_SYSTEM_CLOCK.some((place) => file.startsWith(place));
}

function importsOf(file: string): Import[] {
  const pattern = /^(?:import|export) (type )?(?:[^;]*? from )?'([^']+)';|\bimport\('([^']+)'\)/gms;
  return [...text(file).matchAll(pattern)].map((match) => {
    const [statement, type, atStart, whenNeeded] = match;
    const specifier = atStart ?? whenNeeded ?? '';
    const to = specifier.startsWith('.') ? join(dirname(file), specifier) : specifier;
    const named =
      /\{([^}]*)\}/s
        .exec(statement)?.[1]
        ?.split(',')
        .filter((name) => name.trim() !== '') ?? [];
    const typeOnly = type !== undefined || (named.length > 0 && named.every((name) => name.trim().startsWith('type ')));
    return { from: file, to, typeOnly, whenNeeded: whenNeeded !== undefined };
  });
}
