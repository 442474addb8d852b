import { z } from 'zod';
import { orderDocument } from '../domain/notice.ts';
import { bringId } from '../explain/attention_sentences.ts';
import { adoptCommand, firstLine, iso } from '../explain/glossary.ts';
import type { OpenResult } from '../links/opener.ts';
import * as field from './fields.ts';
import { order } from './order.ts';
import { fieldProblem, type ProblemError, problem } from './problem.ts';
import { type ApiOptions, answer, operation } from './route.ts';

const lines = z
  .string()
  .min(1, { error: 'must have 1 to 2000 characters', abort: true })
  .max(2_000, 'must have 1 to 2000 characters')
  .regex(/^(?:[^\p{Cc}\p{Cs}\uFFFD]|[\t\r\n])+$/u, 'must be UTF-8 without control characters other than line ends');

const THANKS = 'https://shop.example.com/thanks';

// Written anew, it holds nothing that a Location header could not.
const webAddress = field
  .text(2_048)
  .refine(
    (address) => /^https?:\/\/\S*$/i.test(address) && URL.canParse(address),
    'must be an http or https address without spaces',
  )
  .refine((address) => {
    const url = URL.parse(address);
    return url === null || url.username + url.password === '';
  }, 'must not hold a user name or a password')
  .transform((address) => URL.parse(address)?.href ?? address)
  .meta({
    format: 'uri',
    description: 'Where the customer is sent after paying: http or https, without spaces, a user name or a password.',
    examples: [THANKS],
  });

const content = z.strictObject({
  reference: field.givenReference,
  title: field.text(255).meta({ description: 'What the customer reads.', examples: ['A chair'] }),
  ...field.money,
  description: lines.optional().describe('More for the customer to read.'),
  expiresAt: field.givenTime.optional().describe('Within a year, else 422. Default: `SETTLED_LINK_LIFETIME` from now.'),
  metadata: field.metadata.optional(),
  callbackUrl: webAddress.optional(),
  customer: field.givenCustomer,
});

const opening = z.strictObject({
  detail: z.string().describe('Why the last attempt to open the link failed, and when settled tries next.'),
  nextAttemptAt: field.timeOrNull.describe('Null while settled is trying.'),
});

export const openOrder = operation({
  summary: 'Open a payment link for an order',
  description:
    'One call, and the answer has the address to send the customer to. settled commits the token and the signing secret ' +
    'before the service hears of the link, so that its webhooks verify even if an answer is lost.\n\n' +
    'Retry until it answers 200 or 201: the same request never makes a second link.',
  body: content,
  answers: {
    201: answer('The link is open.', { order }),
    200: answer('A request with the same content came before: the order as it is now, with its link.', { order }),
    202: {
      ...answer(
        'It takes longer than 10 s, and settled continues in the background. Repeat the request to get the link.',
        { order, opening },
      ),
      retryAfter: true,
    },
  },
  problems: {
    409: ['reference_conflict', 'order_cancelled', 'link_expired', 'reference_taken'],
    422: ['invalid_request', 'refused_by_service', 'link_withheld'],
    503: ['api_not_configured', 'public_url_not_public', 'api_key_refused'],
  },
  example: { reference: 'order-8001', title: 'A chair', amount: '100.00', callbackUrl: THANKS },
  answer: async (options, { body, by }, response) => {
    const amount = field.readMoney(body, options.currency);
    field.requireEnough(amount);
    const expiresAtMs = field.givenMs(body.expiresAt);
    if (expiresAtMs !== null) await requireExpiry(options, body.reference, expiresAtMs);
    const { reference, title, description = null, metadata = null, callbackUrl = null, customer } = body;
    const content = { reference, title, description, metadata, callbackUrl, customer, amount, expiresAtMs };
    const opened = await requireApi(options).opener.open(content, by);
    switch (opened.outcome) {
      case 'opening': {
        const { retryAfterSeconds, ...waiting } = await waitingFor(options, reference);
        response.status(202).setHeader('retry-after', String(retryAfterSeconds));
        return { order: orderDocument(opened.order), opening: waiting };
      }
      case 'created':
        response.status(201);
        return { order: orderDocument(opened.order) };
      case 'known':
        return { order: orderDocument(opened.order) };
      default:
        throw refusal(reference, opened);
    }
  },
});

const LIFETIME_MS_MAX = 365 * 86_400_000;

/** A request that is only repeated may name a time that has passed. */
async function requireExpiry({ store, clock }: ApiOptions, reference: string, expiresAtMs: number): Promise<void> {
  const aheadMs = expiresAtMs - clock.nowMs();
  if (aheadMs > LIFETIME_MS_MAX) throw fieldProblem('expiresAt', 'must be within a year');
  if (aheadMs > 0 || (await store.findOrder(reference)) !== null) return;
  throw fieldProblem('expiresAt', 'must be in the future');
}

/** The API to open links with. Throws if settled has none, or has no address that the service can deliver to. */
function requireApi({ asking, publicUrl, publicUrlReaches }: ApiOptions): NonNullable<ApiOptions['asking']> {
  if (asking === null) {
    const detail =
      'settled cannot open links. Set SETTLED_API_URL and SETTLED_API_KEY, and restart settled. If you create the link ' +
      'yourself: settled links reserve (POST /v1/links).';
    throw problem(503, 'api_not_configured', detail);
  }
  if (publicUrlReaches) return asking;
  const detail =
    `The service cannot deliver to ${publicUrl}, and a link keeps its webhookUrl, so settled created no link. Set ` +
    'SETTLED_PUBLIC_URL to the https address at which the service reaches settled, and restart settled.';
  throw problem(503, 'public_url_not_public', detail);
}

const ATTEMPT_SECONDS = 5;
const RETRY_AFTER_SECONDS_MAX = 3_600;

/** What an order without a link waits for; `nextAttemptAt` is null while an attempt is under way. */
export async function waitingFor({ store, clock }: ApiOptions, reference: string) {
  const opening = (await store.timeline(reference))?.opening ?? null;
  if (opening?.status !== 'pending') {
    const detail = 'settled is trying to open it now.';
    return { detail, nextAttemptAt: null, retryAfterSeconds: ATTEMPT_SECONDS };
  }
  const { fault, needsId, dueAtMs } = opening;
  const nextAttemptAt = iso(dueAtMs);
  const failed = fault === null ? '' : `${firstLine(fault.message)} `;
  const toDo = needsId ? `${bringId(reference)} ` : '';
  const detail = `${failed}${toDo}settled next tries to open it at ${nextAttemptAt}.`;
  const seconds = Math.ceil((dueAtMs - clock.nowMs()) / 1000);
  return { detail, nextAttemptAt, retryAfterSeconds: Math.min(RETRY_AFTER_SECONDS_MAX, Math.max(1, seconds)) };
}

type Refused = Exclude<OpenResult, { outcome: 'created' | 'known' | 'opening' }>;

function refusal(reference: string, opened: Refused): ProblemError {
  switch (opened.outcome) {
    case 'cancelled':
      return problem(409, 'order_cancelled', `Order ${reference} was cancelled and cannot be paid. ${USE_NEW}`);
    case 'expired': {
      // It may be inactive because it was just paid, so another link could be paid a second time.
      const isInactive = opened.order.state === 'awaiting_payment' && opened.order.link?.status === 'INACTIVE';
      const detail = isInactive
        ? `The service shows the link of order ${reference} inactive: it was disabled, or it has just been paid. Ask ` +
          `again (POST /v1/orders/${reference}/check) before you open another.`
        : `The link of order ${reference} has expired and cannot be paid. Open the order under a new reference. A payment ` +
          'that is already under way still pays this one.';
      return problem(409, 'link_expired', detail);
    }
    case 'conflict': {
      const detail =
        opened.differing === null
          ? `Order ${reference} was registered for a link that the shop creates itself (POST /v1/links), so settled ` +
            'opens none for it. Use that link, or a new reference.'
          : `Order ${reference} exists with other content: ${opened.differing.join(', ')}. Repeat its request unchanged to ` +
            'get its link, or use a new reference.';
      return problem(409, 'reference_conflict', detail);
    }
    case 'taken': {
      const { detail: found, foreignId } = opened;
      // The id of the service's link, if settled did not make it.
      if (foreignId === null) return problem(409, 'reference_taken', `${found} ${USE_NEW}`);
      const detail =
        `${found} settled does not have its signing secret, so it did not adopt the link. ${USE_NEW} If that link is the right one, ` +
        `let an operator run: ${adoptCommand(reference, foreignId)}`;
      return problem(409, 'reference_taken', detail);
    }
    case 'refused':
      return problem(422, 'refused_by_service', opened.detail);
    case 'withheld': {
      const detail =
        `${opened.detail} settled does not give out its address, because a customer would pay other money there. Look at the link in ` +
        "the service's panel. Then open the order with another reference, for the money of the service's link. settled keeps " +
        'watching this link until it expires.';
      return problem(422, 'link_withheld', detail);
    }
    case 'key_refused':
      return problem(503, 'api_key_refused', opened.detail);
  }
}

const USE_NEW = 'Use a new reference.';
