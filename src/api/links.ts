import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { hasRole, type PersonRole } from '../domain/access.ts';
import { inMoney, parseAmount } from '../domain/money.ts';
import { linkDocument, orderDocument } from '../domain/notice.ts';
import { isOpen, type Order } from '../domain/order.ts';
import { adoptCommand } from '../explain/glossary.ts';
import { carriesToken, type LinkSeen, type Service, ServiceFault } from '../paylink/service.ts';
import { SIGNING_SECRET_BYTES_MIN } from '../receive/verify.ts';
import type { Registered } from '../store/verbs/links.ts';
import * as field from './fields.ts';
import { link, order } from './order.ts';
import { apiNotConfigured } from './orders.ts';
import { fieldProblem, noSuch, type ProblemError, problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation } from './route.ts';

const TOKEN_BYTES = 24;
const SECRET_BYTES = 32;

const registration = z.strictObject({
  reference: field.givenReference,
  ...field.money,
  customer: field.givenCustomer,
  id: field.linkId.optional().describe("The link's id at the service. Without it a link is reserved."),
  webhookSecret: z
    .string()
    .max(512, 'must have at most 512 characters')
    .regex(field.PRINTABLE, field.NOT_PRINTABLE)
    .refine((secret) => Buffer.byteLength(secret) >= SIGNING_SECRET_BYTES_MIN, {
      message: `must have at least ${SIGNING_SECRET_BYTES_MIN} bytes: shorter secrets can be guessed`,
    })
    .meta({
      description: `At least ${SIGNING_SECRET_BYTES_MIN} bytes in UTF-8. Of a known link it replaces the secret: admin only.`,
      examples: ['secret-of-link-8102'],
    })
    .optional(),
});

const registeredLink = z.strictObject({
  ...link,
  webhookUrl: field.anyText('Give it to the service as `webhookUrl`.', 'https://hooks.example.com/hooks/Zm9vYmFyYmF6'),
  webhookSecret: field.described(
    z.string().optional(),
    'Give it to the service as `webhookSecret`. Only the answer that made both shows it.',
    'c2VjcmV0IHRoYXQgc2V0dGxlZCBtYWRl',
  ),
});

export const registerLink = operation({
  summary: 'Reserve a link that the shop makes itself, register one, bind or correct its id, correct its secret',
  description:
    'Without `id` it reserves a link; again with `id` it binds it to the order. With `id` and `webhookSecret` it registers ' +
    'one that exists. Another `webhookSecret`, or another `id` while the order is open, corrects the link: admin only.',
  body: registration,
  answers: {
    201: answer('The order and its link are new.', { link: registeredLink, order }),
    200: answer('The order was known: its link as it is now.', { link: registeredLink, order }),
  },
  problems: {
    403: ['correction_forbidden'],
    409: ['reference_conflict', 'link_id_conflict', 'link_id_taken'],
    422: ['invalid_request'],
  },
  example: { reference: 'order-8101', amount: '100.00' },
  answer: async (options, { body, caller, by }, response) => {
    const { store, keyring, credentials, clock } = options;
    const { reference, customer, id, webhookSecret } = body;
    const amount = field.readMoney(body, options.currency);
    const lacksSecret = id !== undefined && webhookSecret === undefined;
    // An order that settled knows keeps its amount and its secret.
    if ((lacksSecret || !field.isEnough(amount)) && (await store.findOrder(reference)) === null) {
      field.requireEnough(amount);
      throw fieldProblem('webhookSecret', 'needed to register a link that exists; leave out id to reserve one');
    }
    const freshSecret = randomBytes(SECRET_BYTES).toString('base64url');
    const linkId = id ?? null;
    const registered = await store.registerLink({
      reference,
      amount,
      customer,
      linkId,
      token: randomBytes(TOKEN_BYTES).toString('base64url'),
      // The shop may have given the service another address for a link that it made itself.
      webhookBase: linkId === null ? options.publicUrl : null,
      secret: webhookSecret === undefined ? null : keyring.seal(webhookSecret, reference),
      freshSecret: keyring.seal(freshSecret, reference),
      mayCorrect: by !== null && hasRole(caller.role as PersonRole, 'admin'),
      by,
      atMs: clock.nowMs(),
    });
    if (registered.outcome === 'corrected') credentials.forget(registered.token);
    if (registered.outcome === 'bound') credentials.noteLinkId(registered.token, linkId ?? '');
    logRegistered(options, body, registered);
    if (!('token' in registered)) throw refusal(body, registered);
    const { outcome, token, linkKey } = registered;
    const isNew = outcome === 'created';
    if (isNew) credentials.keep({ linkKey, reference, token, secret: webhookSecret ?? freshSecret, linkId });
    response.status(isNew ? 201 : 200);
    return {
      link: {
        ...linkDocument(registered.order.link),
        webhookUrl: `${options.publicUrl}/hooks/${token}`,
        ...(isNew && webhookSecret === undefined ? { webhookSecret: freshSecret } : {}),
      },
      order: orderDocument(registered.order),
    };
  },
});

type Given = z.output<typeof registration>;

/** Logs what changed; a repeated request changes nothing. */
function logRegistered({ log }: ApiOptions, { reference, id }: Given, registered: Registered): void {
  const about = { order: reference, ...(id === undefined ? {} : { link: id }) };
  if (registered.outcome === 'created') {
    log.info({ ...about, amount: inMoney(registered.order.amount) }, 'order registered');
  } else if (registered.outcome === 'bound') log.info(about, 'link is open');
  else if (registered.outcome === 'corrected') log.info({ ...about, by: 'person' }, 'link corrected');
}

function refusal({ reference, id }: Given, { outcome, order }: Exclude<Registered, { token: string }>): ProblemError {
  const details = {
    reference_conflict: `Order ${reference} exists with another amount, currency or customer. Use a new reference.`,
    opened_by_settled:
      `Order ${reference} was opened with POST /v1/orders, so settled creates its link and you cannot register one. ` +
      `Repeat that request to get the link. If the service has the link and settled does not: ${adoptCommand(reference, id ?? null)}`,
    link_id_conflict:
      `Order ${reference} already has another link: ${order.link?.id}. You can correct the id of a link only while its ` +
      `order is open. This order is ${order.state}.`,
    link_id_taken: `Link ${id} belongs to order ${order.reference}.`,
    correction_forbidden: 'Only the operator may replace the signing secret or the id of a link.',
  };
  const status = outcome === 'correction_forbidden' ? 403 : 409;
  return problem(status, outcome === 'opened_by_settled' ? 'reference_conflict' : outcome, details[outcome]);
}

const NOTES = {
  own: 'settled asked for this link itself, and its answer was lost: its webhooks verify like those of any other link.',
  other:
    'The signing secret of this link is not ours, so its webhooks are refused: settled asks the service about it instead.',
};

export const adoptLink = operation({
  summary: 'Give an order the link that a person names',
  description: 'Its money and its reference must be those of the order.',
  body: z.strictObject({ id: field.linkId }),
  answers: ok('The order with its link.', {
    order,
    note: z.string().describe("Whether the link is settled's own, and what follows for its webhooks."),
  }),
  problems: { 409: ['not_adoptable'], 503: ['service_unavailable', 'api_key_refused', 'api_not_configured'] },
  example: { id: 'pl_8001' },
  // settled believes nothing about the link but what the service says of it: its money must agree, and it must be unpaid
  // or our own.
  answer: async ({ store, asking, clock, log }, { reference, body: { id }, by }) => {
    if (asking === null) throw apiNotConfigured();
    const [before, watched] = await Promise.all([store.findOrder(reference), store.findLink(reference)]);
    if (before === null || watched === null) throw noSuch('order', reference);
    if (before.link !== null && before.link.id !== null) throw notAdoptable(hasLink(before));
    if (!isOpen(before.state)) throw notAdoptable(notOpen(before));
    const seen = await showLink(asking.service, id);
    const own = carriesToken(seen, watched.token);
    const flaw = flawOf(seen, id, before) ?? (own ? null : begunFlawOf(seen));
    if (flaw !== null) throw notAdoptable(flaw);
    const adopted = await store.adoptLink({ reference, link: seen, by, nowMs: clock.nowMs() });
    if (adopted === 'taken') throw notAdoptable(`Link ${seen.id} belongs to another order here.`);
    const after = (await store.findOrder(reference)) ?? before;
    if (adopted === 'not_open') throw notAdoptable(notOpen(after));
    if (adopted === 'not_parked') throw notAdoptable(after.link?.id ? hasLink(after) : notParked(before));
    log.info({ order: reference, link: seen.id, by: 'person' }, 'link is open');
    asking.reconciler.wake();
    return { order: orderDocument(after), note: own ? NOTES.own : NOTES.other };
  },
});

async function showLink(service: Service, id: string): Promise<LinkSeen> {
  try {
    return (await service.showLink(id, 'confirm')).value;
  } catch (error) {
    const isNone = error instanceof ServiceFault && error.code === 'service_not_found';
    throw isNone ? notAdoptable(`The service has no link ${id}.`) : error;
  }
}

/** Why the link cannot be the order's; null if it can. */
function flawOf(seen: LinkSeen, id: string, { reference, amount }: Order): string | null {
  if (seen.reference !== reference) {
    const other = seen.reference === null ? 'no externalReference' : 'another externalReference';
    return `Link ${id} has ${other}: it is not the link of order ${reference}.`;
  }
  const theirs = seen.money;
  const parsed = theirs.amount === null ? null : parseAmount(theirs.amount, amount.currency);
  if (theirs.currency === amount.currency && parsed?.ok && parsed.amountMinor === amount.amountMinor) return null;
  const asks = [theirs.amount, theirs.currency].filter((part) => part !== null).join(' ') || 'no money at all';
  return `Link ${id} asks for ${asks}, and order ${reference} for ${inMoney(amount)}.`;
}

function begunFlawOf({ id, paymentStatus, payments }: LinkSeen): string | null {
  if (payments === 0 && (paymentStatus === null || paymentStatus === 'NOT_STARTED')) return null;
  return `A customer has already begun to pay link ${id}, and settled cannot tell what that payment is for.`;
}

function hasLink({ reference, link: own }: Order): string {
  return `Order ${reference} has its own link: ${own?.id}.`;
}

function notOpen({ reference, state }: Order): string {
  return `Order ${reference} is ${state}. You can give a link only to an order that waits for its payment.`;
}

function notParked({ reference }: Order): string {
  return (
    `Order ${reference} is not waiting for a link that the service may have. You can give a link only to an order whose ` +
    "reference was taken, or whose link's creation got no answer."
  );
}

function notAdoptable(detail: string): ProblemError {
  return problem(409, 'not_adoptable', detail);
}
