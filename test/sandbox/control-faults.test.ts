import { describe, expect, it } from 'vitest';
import { FAULTS } from '../../sandbox/fault_plans.ts';
import { startTestSandbox } from '../support/sandbox.ts';

describe('control: faults', () => {
  it('adds, lists and removes plans', async () => {
    const sandbox = await startTestSandbox();
    const added = await sandbox.control('/faults', { body: { fault: 'slow', with: { ms: 1 } } });
    expect([added.status, added.body]).toEqual([201, expect.objectContaining({ number: 1, fault: 'slow' })]);
    await sandbox.control('/faults', { body: { fault: 'drop' } });
    const { body } = await sandbox.control('/faults');
    expect(body.faults.map(({ fault }: { fault: string }) => fault)).toEqual(['slow', 'drop']);
    expect(Object.keys(body.known)).toEqual(Object.keys(FAULTS));
    expect((await sandbox.control('/faults/1', { method: 'DELETE' })).status).toBe(200);
    const gone = await sandbox.control('/faults/1', { method: 'DELETE' });
    expect([gone.status, gone.body.error.message]).toEqual([404, expect.stringContaining('known: 2')]);
    await sandbox.control('/faults', { method: 'DELETE' });
    expect((await sandbox.control('/faults')).body.faults).toEqual([]);
  });

  it.for([
    [{}, 'fault', 'fault is missing; known: drop, duplicate,'],
    [{ fault: 'duplicate', with: { times: 1 } }, 'with.times', 'must be a whole number from 2 to 100.'],
    [{ fault: 'duplicate', with: { often: 3 } }, 'with.often', 'is not known; known: times.'],
    [{ fault: 'drop', with: { forGood: 1 } }, 'with.forGood', 'must be true or false.'],
    [{ fault: 'tamper', with: { what: 'all' } }, 'with.what', 'must be amount, status or byte.'],
    [{ fault: 'slow', count: 0 }, 'count', 'must be a whole number from 1 to 1000000.'],
    [{ fault: 'slow', match: 'all' }, 'match', 'must be an object.'],
    [
      { fault: 'duplicate', match: { method: 'GET' } },
      'match.method',
      'duplicate is done to deliveries, match by event, link, attempt.',
    ],
    [{ fault: 'slow', match: { attempt: 1 } }, 'match.attempt', 'slow is done to requests, match by method, path.'],
  ] as const)('says in words what is wrong with the plan %j', async ([plan, field, message]) => {
    const sandbox = await startTestSandbox();
    const { status, body } = await sandbox.control('/faults', { body: plan });
    expect([status, body.error.field]).toEqual([400, field]);
    expect(body.error.message).toContain(message);
  });

  it('lists the known faults if one is unknown', async () => {
    const sandbox = await startTestSandbox();
    const { status, body } = await sandbox.control('/faults', { body: { fault: 'gremlin' } });
    expect([status, body.error.field]).toEqual([400, 'fault']);
    for (const name of Object.keys(FAULTS)) expect(body.error.message).toContain(name);
  });
});
