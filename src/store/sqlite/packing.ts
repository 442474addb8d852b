/** Records whose byte arrays travel beside them as one. */
export type Packed = {
  /** The fields that held byte arrays, with the number of their record and the array's length, in the arrays' order. */
  readonly fields: readonly string[];
  readonly records: Uint32Array;
  readonly lengths: Uint32Array;
  readonly bytes: ArrayBuffer;
};

type Fields = Record<string, unknown>;

/**
 * Takes the byte arrays out of records, which keep null in their place, and packs them into one. A message would copy
 * each of them with the whole buffer that it is a view of (for a request's body, the socket's 64 KiB); packed, they are
 * copied once and change hands.
 */
export function pack(records: readonly unknown[]): Packed {
  const fields: string[] = [];
  const owners: number[] = [];
  const arrays: Uint8Array[] = [];
  let size = 0;
  for (const [index, record] of records.entries()) {
    if (typeof record !== 'object' || record === null || ArrayBuffer.isView(record)) continue;
    for (const field in record) {
      const value = (record as Fields)[field];
      if (!(value instanceof Uint8Array)) continue;
      (record as Fields)[field] = null;
      fields.push(field);
      owners.push(index);
      arrays.push(value);
      size += value.length;
    }
  }
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const array of arrays) {
    bytes.set(array, at);
    at += array.length;
  }
  const lengths = Uint32Array.from(arrays, (array) => array.length);
  return { fields, records: Uint32Array.from(owners), lengths, bytes: bytes.buffer };
}

/** Puts the byte arrays back into the same records; they are views into one buffer. */
export function unpack(records: readonly unknown[], { fields, records: owners, lengths, bytes }: Packed): void {
  let at = 0;
  for (const [index, field] of fields.entries()) {
    const length = lengths[index] as number;
    (records[owners[index] as number] as Fields)[field] = Buffer.from(bytes, at, length);
    at += length;
  }
}
