import { randomBytes } from 'node:crypto';
import type { RequestHandler, Response } from 'express';
import type { z } from 'zod';
import { adoptCommand } from '../domain/advice.ts';
import { formatAmount } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { sendProblem } from '../http/problem.ts';
import type { Registered, Registration } from '../store/store.ts';
import { isEnough, readAmount, refuseField, refuseTooLittle } from './amounts.ts';
import type { ApiOptions } from './options.ts';
import { linkRequest, read } from './requests.ts';

const TOKEN_BYTES = 24;
const SECRET_BYTES = 32;

/**
 * `POST /v1/links`, for links that the shop makes itself. Without `id` it reserves: the answer holds the webhookUrl and,
 * this once, the webhookSecret to give to the service. With `id` it registers a link that exists, or binds the id of a
 * reserved one. Called again with the same content it changes nothing; with another secret, or another id while the order
 * is open, it corrects the link.
 */
export function registerLink(options: ApiOptions): RequestHandler {
  return async (request, response) => {
    const asked = read(linkRequest, request.body, response);
    if (asked === null) return;
    const amount = readAmount(asked, options.currency, response);
    if (amount === null) return;
    const { store, keyring, credentials, clock } = options;
    const lacksSecret = asked.id !== undefined && asked.webhookSecret === undefined;
    // An order that is known keeps its amount, and the secret that it has.
    if ((lacksSecret || !isEnough(amount)) && (await store.findOrder(asked.reference)) === null) {
      if (!isEnough(amount)) return refuseTooLittle(response);
      const detail = 'needed to register a link that exists; leave out id to reserve one';
      refuseField(response, 'webhookSecret', detail);
      return;
    }
    const freshSecret = randomBytes(SECRET_BYTES).toString('base64url');
    const registration: Registration = {
      reference: asked.reference,
      amount,
      linkId: asked.id ?? null,
      token: randomBytes(TOKEN_BYTES).toString('base64url'),
      secret: asked.webhookSecret === undefined ? null : keyring.seal(asked.webhookSecret, asked.reference),
      freshSecret: keyring.seal(freshSecret, asked.reference),
      mayCorrect: response.locals.role === 'operator',
      atMs: clock.nowMs(),
    };
    const registered = await store.registerLink(registration);
    if (registered.outcome === 'corrected') credentials.forget(registered.token);
    if (registered.outcome === 'bound') credentials.noteLinkId(registered.token, registration.linkId ?? '');
    logRegistered(options, asked, registered);
    if (registered.outcome === 'created') {
      const { linkKey, token } = registered;
      const { reference, webhookSecret: secret = freshSecret } = asked;
      credentials.keep({ linkKey, reference, token, secret, linkId: registration.linkId });
    }
    answer(options, response, asked, registered, freshSecret);
  };
}

/** What changed; a request that is only repeated changes nothing. */
function logRegistered(
  { log }: ApiOptions,
  { reference: order, id: link }: z.infer<typeof linkRequest>,
  registered: Registered,
): void {
  const { amount } = registered.order;
  const linkId = link === undefined ? {} : { link };
  if (registered.outcome === 'created') {
    log.info({ order, ...linkId, amount: `${formatAmount(amount)} ${amount.currency}` }, 'order registered');
  } else if (registered.outcome === 'bound') log.info({ order, ...linkId }, 'link is open');
  else if (registered.outcome === 'corrected') log.info({ order, ...linkId, by: 'person' }, 'link corrected');
}

function answer(
  { publicUrl }: ApiOptions,
  response: Response,
  { reference, id, webhookSecret }: z.infer<typeof linkRequest>,
  registered: Registered,
  freshSecret: string,
): void {
  const { order, outcome } = registered;
  const refusals = {
    reference_conflict: `Order ${reference} exists with another amount or currency. Use a new reference.`,
    opened_by_settled:
      `Order ${reference} was opened with POST /v1/orders: settled makes its link itself, and none is registered for it. ` +
      `Repeat that request to get the link. Where the service has it and settled does not: ${adoptCommand(reference, id ?? null)}`,
    link_id_conflict:
      `Order ${reference} has another link already: ${order.link?.id}. The id of a link can be corrected only while its ` +
      `order is open; this one is ${order.state}.`,
    link_id_taken: `Link ${id} belongs to order ${order.reference}.`,
    correction_forbidden: 'Only the operator may replace the signing secret or the id of a link.',
  };
  if (!('token' in registered)) {
    const { outcome: refused } = registered;
    const status = refused === 'correction_forbidden' ? 403 : 409;
    const code = refused === 'opened_by_settled' ? 'reference_conflict' : refused;
    sendProblem(response, { status, code, detail: refusals[refused] });
    return;
  }
  const showsSecret = outcome === 'created' && webhookSecret === undefined;
  response
    .status(outcome === 'created' ? 201 : 200)
    .json({
      link: {
        ...order.link,
        webhookUrl: `${publicUrl}/hooks/${registered.token}`,
        ...(showsSecret ? { webhookSecret: freshSecret } : {}),
      },
      order: orderDocument(order),
    });
}
