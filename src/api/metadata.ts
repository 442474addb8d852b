import { z } from 'zod';
import { ExactNumber } from '../json.ts';

const METADATA = { bytesMax: 8_192, depthMax: 8 } as const;

/** What a shop notes on its link. It is passed on as it is read, so it must be readable without loss. */
export const metadata = z
  .unknown()
  .superRefine(checkMetadata)
  .transform((value) => value as Record<string, unknown>)
  .meta({
    type: 'object',
    additionalProperties: true,
    description:
      `Handed to the service as it is: at most ${METADATA.bytesMax} bytes and ${METADATA.depthMax} levels, its numbers such ` +
      'as JavaScript can hold.',
    examples: [{ cart: 'c-17' }],
  });

function checkMetadata(value: unknown, { addIssue }: z.core.$RefinementCtx): void {
  const flaw = flawOfMetadata(value);
  if (flaw !== null) addIssue({ code: 'custom', message: flaw });
}

function flawOfMetadata(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'must be a JSON object';
  if (!isShallow(value, METADATA.depthMax)) return `must not be nested deeper than ${METADATA.depthMax} levels`;
  const bytes = Buffer.byteLength(JSON.stringify(value));
  if (bytes > METADATA.bytesMax) return `must have at most ${METADATA.bytesMax} bytes as JSON; it has ${bytes}`;
  return isExact(value) ? null : 'must not hold numbers that lose digits when they are read: write them as text';
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null || value instanceof ExactNumber) return true;
  return levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1));
}

function isExact(value: unknown): boolean {
  if (value instanceof ExactNumber) return false;
  if (typeof value === 'number') {
    return Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
  }
  return typeof value !== 'object' || value === null || Object.values(value).every(isExact);
}
