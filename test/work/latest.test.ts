import { expect, it } from 'vitest';
import { openLatest } from '../../src/work/latest.ts';

/** A value that is worth keeping from 10 on, and is made as soon as `finish` is called. */
function latestOf(first: number) {
  let nowMs = 0;
  let next = first;
  let begun = 0;
  let gate = Promise.resolve();
  const latest = openLatest({
    clock: { monotonicMs: () => nowMs },
    make: async () => {
      begun++;
      const value = next++;
      await gate;
      if (value === 13) throw new Error('busy');
      return value;
    },
    againMs: 30,
    oldMs: 60,
    isKept: (value) => value >= 10,
  });
  return {
    ...latest,
    pass: (ms: number) => {
      nowMs += ms;
    },
    /** Makes wait until what is returned is called. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      gate = promise;
      return async () => {
        resolve();
        await new Promise(setImmediate);
      };
    },
    begun: () => begun,
  };
}

it('a value is made once, and again in the background when it has an age', async () => {
  const { get, pass, hold, begun } = latestOf(10);
  expect([await get(), await get()]).toEqual([10, 10]);
  const finish = hold();
  pass(29);
  expect([await get(), begun()]).toEqual([10, 1]);
  pass(1);
  expect([await get(), begun()]).toEqual([10, 2]);
  await finish();
  expect(await get()).toBe(11);
});

it('is made once at a time in the background', async () => {
  const { get, pass, hold, begun } = latestOf(10);
  await get();
  const finish = hold();
  pass(30);
  expect([await get(), await get(), begun()]).toEqual([10, 10, 2]);
  await finish();
  expect([await get(), begun()]).toEqual([11, 2]);
});

it('has the age of the moment at which it began to be made', async () => {
  const { anew, get, pass, hold } = latestOf(10);
  const finish = hold();
  const made = anew();
  pass(60);
  await finish();
  expect([await made, await get()]).toEqual([10, 11]);
});

it('is not shown once it is too old, not even if it cannot be made any more', async () => {
  const { get, pass, hold } = latestOf(12);
  await get();
  const fail = hold();
  pass(30);
  expect(await get()).toBe(12);
  await fail();
  pass(30);
  expect(await get()).toBe(14);
});

it('meets the failure of what is too old', async () => {
  const { get, pass } = latestOf(12);
  await get();
  pass(60);
  await expect(get()).rejects.toThrow('busy');
});

it('is made for each caller while it is not worth keeping', async () => {
  const { get } = latestOf(8);
  expect([await get(), await get(), await get(), await get()]).toEqual([8, 9, 10, 10]);
});

it('is made for who asks for it anew, and kept for others', async () => {
  const { get, anew } = latestOf(10);
  expect([await get(), await anew(), await get()]).toEqual([10, 11, 11]);
});
