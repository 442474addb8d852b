import { describe, expect, it } from 'vitest';
import { openLanes } from '../../../src/store/sqlite/group_commit.ts';

type Call = { verb: string; n: number };

describe('the order of calls in batches', () => {
  function filled(counts: Record<string, number>) {
    const lanes = openLanes<Call>();
    for (const [verb, count] of Object.entries(counts)) {
      for (let n = 0; n < count; n++) lanes.add({ verb, n });
    }
    return lanes;
  }

  const count = (batch: Call[], verb: string) => batch.filter((call) => call.verb === verb).length;

  it('puts intake before other work that came first', () => {
    const lanes = filled({ settle: 1 });
    for (const verb of ['recordDelivery', 'findCredentials', 'recordHint', 'recordRejection', 'heartbeat']) {
      lanes.add({ verb, n: 0 });
    }
    expect(lanes.next().map(({ verb }) => verb)).toEqual([
      'recordDelivery',
      'findCredentials',
      'recordHint',
      'recordRejection',
      'heartbeat',
      'settle',
    ]);
  });

  it('keeps the order of each kind', () => {
    const batch = filled({ settle: 50, recordDelivery: 1000 }).next();
    const deliveries = batch.filter(({ verb }) => verb === 'recordDelivery').map(({ n }) => n);
    const others = batch.filter(({ verb }) => verb === 'settle').map(({ n }) => n);
    expect(deliveries).toEqual(deliveries.map((_, index) => index));
    expect(others).toEqual(others.map((_, index) => index));
  });

  it('gives other work its share while deliveries wait without end', () => {
    const lanes = filled({ settle: 640 });
    let settled = 0;
    for (let batches = 0; settled < 640; batches++) {
      expect(batches).toBeLessThan(10);
      for (let n = 0; n < 300; n++) lanes.add({ verb: 'recordDelivery', n });
      settled += count(lanes.next(), 'settle');
    }
  });

  it('holds a bounded number of calls in one batch', () => {
    expect(filled({ settle: 5000, recordDelivery: 5000 }).next()).toHaveLength(256 + 64);
    expect(filled({ settle: 5000 }).next()).toHaveLength(256);
  });

  it('keeps other work in small batches while deliveries may come, and lets them grow when none do', () => {
    const lanes = filled({ settle: 5000, recordDelivery: 1 });
    const sizes = Array.from({ length: 10 }, () => lanes.next().length);
    expect(sizes).toEqual([65, 64, 64, 64, 64, 64, 64, 64, 64, 256]);
  });

  it('serves every call once, and then nothing', () => {
    const lanes = filled({ settle: 700, recordDelivery: 700 });
    let served = 0;
    for (let batch = lanes.next(); batch.length > 0; batch = lanes.next()) served += batch.length;
    expect(served).toBe(1400);
  });
});
