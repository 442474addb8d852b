import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll } from 'vitest';
import type { Clock } from '../../src/work/clock.ts';
import { startTestApp, type TestApp } from './app.ts';
import { type Shop, type ShopOptions, startShop } from './shop.ts';

/**
 * One settled for all tests of a file, because starting one takes longer than most tests. Each test works on its own
 * orders. The folder is removed at the end; to look at it after a test, use `startTestApp` instead.
 */
export function sharedApp(options: { environment?: Record<string, string>; clock?: Clock } = {}): () => TestApp {
  let shared: TestApp | undefined;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    let stop = () => {};
    shared = await startTestApp({
      ...options,
      storePath: join(folder, 'settled.db'),
      atEnd: (end) => {
        stop = end;
      },
    });
    return () => {
      stop();
      rmSync(folder, { recursive: true, force: true });
    };
  });
  return () => {
    if (shared === undefined) throw new Error('settled has not been started yet');
    return shared;
  };
}

/** The same with the sandbox. Tests that turn its clock, or count its requests, start their own. */
export function sharedShop(options: ShopOptions = {}): () => Shop {
  let shared: Shop | undefined;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
    const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })];
    const storePath = join(folder, 'settled.db');
    shared = await startShop({ ...options, storePath, atEnd: (end) => ends.unshift(end) });
    return async () => {
      for (const end of ends) await end();
    };
  });
  return () => {
    if (shared === undefined) throw new Error('the shop has not been started yet');
    return shared;
  };
}

let lastReference = 0;

/** A reference that no other test of the file uses. */
export function freshReference(): string {
  return `order-${++lastReference}`;
}
