import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readMigrations } from '../../src/store/migrate.ts';

const read = (file: string) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
const files = (engine: string) => readdirSync(new URL(`../../migrations/${engine}/`, import.meta.url)).sort();

/** Those that take away what the release before does not use any more. The changelog says so of their release. */
const CONTRACTING: string[] = [];
/** What no program of the release before can work beside, or what would hold one up for too long. */
const CONTRACTS =
  /\b(DROP\s+(TABLE|COLUMN|INDEX|CONSTRAINT)|RENAME|ALTER\s+COLUMN\s+\w+\s+(TYPE|SET\s+(NOT\s+NULL|DATA))|TRUNCATE|DELETE\s+FROM)\b/i;
const ADDED_WITHOUT_DEFAULT = /ADD\s+COLUMN\s+(?:(?!DEFAULT)[^,;])*NOT\s+NULL(?:(?!DEFAULT)[^,;])*[,;]/i;

describe('migrations: the rule of docs/migrations.md', () => {
  it('are paired: the same numbers and names for both engines', () => {
    expect(files('postgres')).toEqual(files('sqlite'));
    const numbers = files('postgres').map((name) => Number(/^(\d{4})_[a-z_]+\.sql$/.exec(name)?.[1]));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  });

  it('expand, each of them, but for those that are listed as contracting', () => {
    const contracting = readMigrations('postgres').filter(({ expands }) => !expands);
    expect(contracting.map(({ name }) => name)).toEqual(CONTRACTING);
    const changelog = read('CHANGELOG.md');
    if (CONTRACTING.length > 0) expect(changelog).toContain('**contracts**');
  });

  it('remove nothing if they say that they expand', () => {
    const wrong = readMigrations('postgres').flatMap(({ name, sql, expands }) => {
      const [found] = CONTRACTS.exec(withoutComments(sql)) ?? ADDED_WITHOUT_DEFAULT.exec(withoutComments(sql)) ?? [];
      return expands && found !== undefined ? [`${name}: ${found}`] : [];
    });
    expect(wrong).toEqual([]);
  });

  it.each(['ALTER TABLE a DROP COLUMN b;', 'ALTER TABLE a ADD COLUMN b INTEGER NOT NULL;', 'DROP TABLE a;'])(
    'would be found to contract: %s',
    (sql) => {
      expect(CONTRACTS.test(sql) || ADDED_WITHOUT_DEFAULT.test(sql)).toBe(true);
    },
  );
});

describe('statements of PostgreSQL', () => {
  it('name the columns of their answers: a kept one is refused once its table has another column', () => {
    const folder = 'src/store/postgres';
    const wrong = readdirSync(new URL(`../../${folder}/`, import.meta.url)).filter((file) =>
      /statement\(\s*[`']SELECT\s+(\w+\.)?\*/.test(read(`${folder}/${file}`)),
    );
    expect(wrong).toEqual([]);
  });
});

/** A migration without its comments, and without the functions of triggers that it makes but does not carry out. */
function withoutComments(sql: string): string {
  return sql.replace(/--.*$/gm, '').replace(/^CREATE FUNCTION [^$]*\$\$[\s\S]*?\$\$;$/gm, '');
}
