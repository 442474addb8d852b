import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { z } from 'zod';
import { Refusal } from '../model.ts';
import type { NewLink } from '../store/links.ts';

/** A link to be created. */
export type Creation = Omit<NewLink, 'createdAtMs'>;

/** The spec names no currency among the fields of a creation; installments are quoted in BRL (section 2). */
const CURRENCY = 'BRL';
/** Exclusive (spec section 8). */
const AMOUNT_MIN = 25;
/**
 * The spec shows no bound (section 8, gaps). Up to this one a number holds every cent, even of a total with interest.
 */
const AMOUNT_MAX = 1_000_000_000_000;
/** Not every JSON writer can write deeper metadata. */
const METADATA_DEPTH_MAX = 100;

/**
 * Reads the body of a creation (spec section 4). Where the spec is silent:
 * - `description` is accepted; fields that the spec does not name are ignored, because it names no refusal for them;
 * - null means that the field is not given;
 * - an amount is a number, not text, with at most two decimals;
 * - `expiresAt` is in the future, and has its offset from UTC;
 * - only the size of the body bounds the lengths.
 *
 * Throws the refusal 400 that says what is wrong with each field; its `field` is the first of them.
 */
export function readCreation(body: unknown, nowMs: number): Creation {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new Refusal(400, 'validation_error', 'The body must be a JSON object.', 'body');
  }
  const read = SHAPE.safeParse(body);
  if (!read.success) {
    const { issues } = read.error;
    const message = issues.map(({ path, message }) => `${path.join('.')} ${message}`).join('; ');
    throw new Refusal(400, 'validation_error', `${message}.`, String(issues[0]?.path[0]));
  }
  const { expiresAt, ...given } = read.data;
  const expiresAtMs = expiresAt === null ? null : Date.parse(expiresAt);
  if (expiresAtMs !== null && expiresAtMs <= nowMs) {
    throw new Refusal(400, 'validation_error', 'expiresAt must be in the future.', 'expiresAt');
  }
  return { ...given, currency: CURRENCY, expiresAtMs };
}

const SHAPE = z.object({
  title: text('is required: a text that is not empty').refine((title) => title.trim() !== '', {
    error: 'must not be empty',
  }),
  amount: amount(),
  externalReference: optional(filled()),
  description: optional(text()),
  expiresAt: optional(z.iso.datetime({ offset: true, error: 'must be an ISO 8601 date-time with Z or an offset' })),
  metadata: optional(metadata()),
  webhookUrl: optional(address()),
  webhookSecret: optional(filled()),
  callbackUrl: optional(address()),
});

function optional<Type extends z.ZodType>(type: Type) {
  return type.nullish().transform((value) => value ?? null);
}

/** UTF-8 cannot hold a lone surrogate: it would come back as something else. */
function text(error = 'must be a text') {
  return z
    .string({ error })
    .refine((value) => value.isWellFormed(), { error: 'must be a text without lone surrogates' });
}

function filled() {
  return text('must be a text that is not empty').min(1, { error: 'must not be empty' });
}

function amount() {
  return z
    .number({ error: `is required: a number greater than ${AMOUNT_MIN}` })
    .gt(AMOUNT_MIN, { error: `must be greater than ${AMOUNT_MIN}` })
    .max(AMOUNT_MAX, { error: `must be at most ${AMOUNT_MAX}` })
    .refine((value) => Number(value.toFixed(2)) === value, { error: 'must have at most two decimals' });
}

function address() {
  return text('must be an http or https address').refine(
    (value) => /^https?:\/\/\S+$/i.test(value) && URL.canParse(value),
    { error: 'must be an http or https address' },
  );
}

function metadata() {
  return z
    .custom<Record<string, unknown>>((value) => typeof value === 'object' && value !== null && !Array.isArray(value), {
      error: 'must be a JSON object',
      abort: true,
    })
    .refine((value) => isShallow(value), { error: `must be nested at most ${METADATA_DEPTH_MAX} deep`, abort: true })
    .refine((value) => isExact(value), {
      error: `must hold no number above ${Number.MAX_SAFE_INTEGER} that would come back as another; write it as text`,
    });
}

/** Walks by levels, because deep nesting would exhaust a recursion. The metadata itself is the first level. */
function isShallow(metadata: object): boolean {
  let level = [metadata];
  for (let depth = 1; depth <= METADATA_DEPTH_MAX; depth++) {
    level = level.flatMap((part) => Object.values(part).filter(isContainer));
  }
  return level.length === 0;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/**
 * Whether a double surely holds every number exactly. Above that, JSON.parse has lost the digits that were written, so
 * larger whole numbers and infinity are refused. Fractions are rounded, as everywhere in JSON.
 */
function isExact(value: unknown): boolean {
  if (typeof value === 'number') return Number.isSafeInteger(Math.trunc(value));
  return !isContainer(value) || Object.values(value).every(isExact);
}

const BODY_BYTES_MAX = 100 * 1024;

/** The body as JSON. Throws the refusal 400 if it is too large, of another type, or not JSON in UTF-8. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers;
  if (!/^application\/json *(;|$)/i.test(type ?? '')) {
    throw bad(`The content-type must be application/json; it is ${type ?? 'missing'}.`, 'content-type');
  }
  if (encoding !== undefined && encoding !== 'identity') {
    throw bad(`The content-encoding ${encoding} is not read; send the body as it is.`, 'content-encoding');
  }
  const bytes = await readBytes(request);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw bad('The body is not valid UTF-8.', 'body');
  }
  try {
    return JSON.parse(text);
  } catch {
    throw bad('The body is not valid JSON.', 'body');
  }
}

async function readBytes(request: IncomingMessage): Promise<Uint8Array> {
  try {
    return await getRawBody(request, { limit: BODY_BYTES_MAX, length: request.headers['content-length'] ?? null });
  } catch (error) {
    const { type } = error as { type?: string };
    if (type === undefined) throw error;
    throw bad(
      type === 'entity.too.large'
        ? `The body is larger than ${BODY_BYTES_MAX} bytes.`
        : `The body could not be read: ${type}.`,
      'body',
    );
  }
}

function bad(message: string, field: string): Refusal {
  return new Refusal(400, 'validation_error', message, field);
}
