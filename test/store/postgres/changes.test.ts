import { describe, expect, it, onTestFinished } from 'vitest';
import { World } from '../contract/world.ts';
import { openTwoReplicas } from './two_replicas.ts';

describe('the change mark of a shared store', () => {
  it('is another one after what another replica committed, and not before it could be seen', async () => {
    const { one, other, close } = await openTwoReplicas();
    onTestFinished(close);
    const nothing = async () => {};
    const run = async () => [];
    const opened = { store: other, reopen: async () => other, forgetChecks: nothing, run, dispose: async () => null };
    const world = new World(opened);
    for (let n = 0; n < 20; n++) {
      const before = await one.changeMark();
      const { reference } = await world.newLink();
      expect(await one.changeMark()).not.toBe(before);
      expect(await one.findOrder(reference)).not.toBeNull();
    }
  });
});
