import { expect, it } from 'vitest';
import { openSharedLoads } from '../../src/api/shared_loads.ts';

function loads() {
  let nowMs = 0;
  let count = 0;
  const shared = openSharedLoads({ monotonicMs: () => nowMs });
  return {
    shared,
    pass: (ms: number) => {
      nowMs += ms;
    },
    load: (name = 'orders') => shared.load(name, async () => ++count),
  };
}

it('pages that load the same at the same moment load it once', async () => {
  const { load, pass } = loads();
  expect(await Promise.all([load(), load()])).toEqual([1, 1]);
  expect(await load('events')).toBe(2);
  pass(499);
  expect(await load()).toBe(1);
  pass(1);
  expect(await load()).toBe(3);
});

it('what was loaded before a change is not shown after it', async () => {
  const { load, shared } = loads();
  const before = load();
  shared.forget();
  expect(await Promise.all([before, load()])).toEqual([1, 2]);
});

it('a failure is not kept', async () => {
  const { load, shared } = loads();
  await expect(shared.load('orders', async () => Promise.reject(new Error('busy')))).rejects.toThrow('busy');
  expect(await load()).toBe(1);
});
