import { describe, expect, it } from 'vitest';
import { pack, recordsOfAnswers, recordsOfCalls, unpack } from '../../../src/store/sqlite/messages.ts';

const bytes = (text: string) => Buffer.from(text);

describe('byte arrays between threads', () => {
  it('come back into the records that they were taken from', () => {
    const make = () => [{ body: bytes('one'), n: 1 }, null, 'text', { mac: bytes(''), body: bytes('three') }, 7];
    const records = make();
    const packed = pack(records);
    expect(records[0]).toEqual({ body: null, n: 1 });
    const sent = structuredClone({ records, packed });
    unpack(sent.records, sent.packed);
    expect(sent.records).toEqual(make());
  });

  it('are copied alone, without the buffer that they are a view of', () => {
    expect(pack([{ body: Buffer.alloc(65_536).subarray(10, 20) }])?.bytes.byteLength).toBe(10);
  });

  it('leave a record alone that is itself a byte array', () => {
    const records = [bytes('whole')];
    expect(pack(records)).toBeNull();
    expect(records[0]).toEqual(bytes('whole'));
  });

  it("are found in the first argument of a call, and in an answer's value or its rows", () => {
    const calls = [{ id: 1, verb: 'record', args: [{ body: bytes('call') }, 'second'] }];
    const answers = [
      { id: 1, ok: true as const, value: { secret: bytes('value') } },
      { id: 2, ok: true as const, value: [{ body: bytes('row 1') }, { body: bytes('row 2') }] },
      { id: 3, ok: false as const, error: { code: null, kind: 'terminal' as const, message: '', stack: null } },
    ];
    const packed = (records: unknown[]) => Buffer.from(pack(records)?.bytes as ArrayBuffer).toString();
    expect([packed(recordsOfCalls(calls)), packed(recordsOfAnswers(answers))]).toEqual(['call', 'valuerow 1row 2']);
  });
});
