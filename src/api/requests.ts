import type { Request, Response } from 'express';
import { z } from 'zod';
import { sendProblem } from '../http/problem.ts';
import { ExactNumber } from '../json.ts';
import { SIGNING_SECRET_BYTES_MIN } from '../receive/verify.ts';
import { ENOUGH } from './amounts.ts';
import { readKey } from './cursors.ts';
import { metadata } from './metadata.ts';

/**
 * What the API accepts. Every unknown field is refused by its name. `meta` says in the API's document what JSON Schema
 * cannot tell from the schema itself.
 */

const IS_NEEDED = 'is needed';

// U+FFFD is what bytes become that are not UTF-8.
const PRINTABLE = /^[^\p{Cc}\p{Cs}\uFFFD]+$/u;
const NOT_PRINTABLE = 'must be UTF-8 without control characters';
export const text = (max: number) => {
  const length = `must have 1 to ${max} characters`;
  return z.string().min(1, { error: length, abort: true }).max(max, length).regex(PRINTABLE, NOT_PRINTABLE);
};

// HTTP clients take a dot, or two, in a path for the way up.
export const reference = text(128)
  .regex(/^(?!\.{1,2}$)/, 'must not be . or ..')
  .meta({ description: "The order's name, and the `externalReference` of its link.", examples: ['order-8001'] });
const linkId = text(255).meta({ description: "The link's id at the service.", examples: ['pl_8001'] });

const webhookSecret = z
  .string()
  .max(512, 'must have at most 512 characters')
  .regex(PRINTABLE, NOT_PRINTABLE)
  .refine((secret) => Buffer.byteLength(secret) >= SIGNING_SECRET_BYTES_MIN, {
    message: `must have at least ${SIGNING_SECRET_BYTES_MIN} bytes: shorter secrets can be guessed`,
  })
  .meta({
    description:
      `At least ${SIGNING_SECRET_BYTES_MIN} bytes in UTF-8. Where the link is there already it takes the place of the ` +
      'one that is known: operator only.',
    examples: ['secret-of-link-8102'],
  });

const AMOUNT = 'must be a number or a decimal string';
const money = {
  /** By its own characters, where a number would not be the one that was written. */
  amount: z
    .unknown()
    .transform((amount) => (amount instanceof ExactNumber ? amount.text : amount))
    .pipe(
      z.union([z.string().max(64, 'must have at most 64 characters'), z.number()], {
        error: ({ input }) => (input === undefined ? IS_NEEDED : AMOUNT),
      }),
    )
    .meta({
      anyOf: [{ type: 'string', maxLength: 64 }, { type: 'number' }],
      description:
        `A decimal, taken as it is written. It must be ${ENOUGH}, in every currency: the service makes no smaller link. It may ` +
        'have no more decimals than the currency, and at most 15 digits with them. Else 422.',
      examples: ['100.00'],
    }),
  currency: z
    .string()
    .optional()
    .meta({
      description:
        'ISO 4217, in capitals, or one that `SETTLED_CURRENCY` names; else 422. Without it: the first of `SETTLED_CURRENCY`.',
      examples: ['BRL'],
    }),
};

export const linkRequest = z.strictObject({
  reference,
  ...money,
  id: linkId.optional().describe("The link's id at the service. Without it a link is reserved."),
  webhookSecret: webhookSecret.optional(),
});

export const reconcileRequest = z.strictObject({
  reference: reference.optional().describe('Only the link of this order, and now.'),
  dryRun: z.boolean().optional().describe('Only count.'),
});

const lines = z
  .string()
  .min(1, { error: 'must have 1 to 2000 characters', abort: true })
  .max(2_000, 'must have 1 to 2000 characters')
  .regex(/^(?:[^\p{Cc}\p{Cs}\uFFFD]|[\t\r\n])+$/u, 'must be UTF-8 without control characters other than line ends');

// Written anew, it holds nothing that a Location header could not.
const webAddress = text(2_048)
  .refine(
    (address) => /^https?:\/\/\S*$/i.test(address) && URL.canParse(address),
    'must be an http or https address without spaces',
  )
  .refine((address) => !hasCredentials(address), 'must not hold a user name or a password')
  .transform((address) => URL.parse(address)?.href ?? address)
  .meta({
    format: 'uri',
    description: 'Where the customer is sent after paying: http or https, without spaces, a user name or a password.',
    examples: ['https://shop.example.com/thanks'],
  });

function hasCredentials(address: string): boolean {
  const url = URL.parse(address);
  return url !== null && url.username + url.password !== '';
}

export const time = z.iso
  .datetime({ offset: true, error: 'must be a time in ISO 8601 with its offset, like 2030-01-31T12:00:00Z' })
  .meta({ examples: ['2030-01-31T12:00:00Z'] });

export const orderRequest = z.strictObject({
  reference,
  title: text(255).meta({ description: 'What the customer reads.', examples: ['A chair'] }),
  ...money,
  description: lines.optional().describe('More for the customer to read.'),
  expiresAt: time
    .optional()
    .describe('When the link expires: within a year, else 422. Without it: after `SETTLED_LINK_LIFETIME`.'),
  metadata: metadata.optional(),
  callbackUrl: webAddress.optional(),
});

export const adoptRequest = z.strictObject({ id: linkId });

const reason = text(500).meta({
  description: 'Kept, and shown in the timeline.',
  examples: ['the customer wants it after all'],
});

/** Of a person who does what settled would not do by itself. */
export const endRequest = z.strictObject({ reason });

/** A delivery as it was captured. A body of more bytes does not fit into a request to this API. */
export const verifyRequest = z.strictObject({
  signature: z
    .string()
    .max(2048, 'must have at most 2048 characters')
    .describe('The value of the signature header.')
    .meta({ examples: ['ab'.repeat(32)] }),
  timestamp: z
    .string()
    .max(256, 'must have at most 256 characters')
    .describe('The value of the timestamp header.')
    .meta({ examples: ['1760000000000'] }),
  bodyBase64: z
    .string()
    .max(60_000, 'must have at most 60000 characters')
    .regex(/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'must be base64, with its padding')
    .describe('The raw body in base64: 45000 bytes at most.')
    .meta({ examples: ['eyJpZCI6ImV2dF8xIn0='] }),
  atMs: z
    .int('must be a whole number')
    .min(0, 'must not be negative')
    .max(8_640_000_000_000_000, 'must be epoch milliseconds that a date can have')
    .optional()
    .describe('When it came, in epoch milliseconds; now if it is left out.'),
});

export const resolveRequest = z.strictObject({
  decision: z
    .enum(['accept', 'reject'])
    .describe('`accept`: the order is paid by what came. `reject`: it is cancelled, and a refund is due.'),
  reason,
});

export const nothing = z.strictObject({});

/** Reads a part of a request by its schema. If it does not fit, answers 400 with every fault and returns null. */
export function read<T>(schema: z.ZodType<T>, value: unknown, response: Response): T | null {
  const parsed = schema.safeParse(value ?? {}, { error: plainWords });
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.flatMap(faultsOf);
  sendProblem(response, {
    status: 400,
    code: 'invalid_request',
    detail: errors.map((error) => (error.path ? `${error.path}: ${error.detail}` : error.detail)).join('; '),
    errors,
  });
  return null;
}

const MUST_BE: Readonly<Record<string, string>> = {
  string: 'must be text',
  number: 'must be a number',
  boolean: 'must be true or false',
  object: 'must be a JSON object',
};

/** The words for what the schemas themselves say nothing of. */
function plainWords(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return IS_NEEDED;
  if (issue.code === 'invalid_type') return MUST_BE[issue.expected] ?? 'is of another type than it must be';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  return 'cannot be used';
}

/** One fault by its place; unknown fields are named each. */
function faultsOf(issue: z.core.$ZodIssue): { path: string; detail: string }[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), detail: 'there is no such field' }));
  }
  return [{ path: issue.path.join('.'), detail: issue.message }];
}

export const orderPath = z.object({ reference });

/** Reads the reference in the path. */
export function readReference(request: Request, response: Response): string | null {
  return read(orderPath, request.params, response)?.reference ?? null;
}

/** Reads the number that names an event in the path; answers 404 where it can name none. */
export function readEventKey(request: Request, response: Response): number | null {
  const id = String(request.params.id);
  const key = readKey(id);
  if (key !== null) return key;
  sendProblem(response, { status: 404, code: 'not_found', detail: `There is no event ${id}.` });
  return null;
}
