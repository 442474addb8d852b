import type { NumberedCall, PackedCalls, Slice } from './messages.ts';

/** Packs the byte arrays of many calls into one. */
export function packCalls(calls: readonly NumberedCall[]): PackedCalls {
  const slices: Slice[] = [];
  const arrays: Uint8Array[] = [];
  let size = 0;
  const stripped = calls.map((call, index) => {
    const [first, ...rest] = call.args;
    if (typeof first !== 'object' || first === null) return call;
    const plain: Record<string, unknown> = {};
    for (const [field, value] of Object.entries(first)) {
      if (value instanceof Uint8Array) {
        slices.push({ call: index, field, at: size, length: value.length });
        arrays.push(value);
        size += value.length;
      } else plain[field] = value;
    }
    return { ...call, args: [plain, ...rest] };
  });
  const bytes = new Uint8Array(size);
  for (const [index, slice] of slices.entries()) bytes.set(arrays[index] as Uint8Array, slice.at);
  return { calls: stripped, slices, bytes: bytes.buffer };
}

/** The calls as they were before packing; their byte arrays are views into one buffer. */
export function unpackCalls({ calls, slices, bytes }: PackedCalls): NumberedCall[] {
  for (const { call, field, at, length } of slices) {
    const [first] = (calls[call] as NumberedCall).args;
    (first as Record<string, unknown>)[field] = Buffer.from(bytes, at, length);
  }
  return calls;
}
