import { ordersQuery } from '../../list_queries.ts';
import { adoptRequest, linkRequest, orderRequest, resolveRequest, verifyRequest } from '../../requests.ts';
import type { Operation, Stated } from '../../route.ts';
import { verdictAnswer } from '../schemas/event.ts';
import {
  adoptAnswer,
  checkAnswer,
  linkAnswer,
  openingAnswer,
  orderAnswer,
  ordersPage,
  timelineAnswer,
} from '../schemas/order.ts';

const group = 'Orders';

/** Of every route that asks the service about one link. */
export const ASKING: readonly Stated[] = [
  [409, 'link_unknown'],
  [503, 'link_unknown'],
  [503, 'service_unavailable'],
  [503, 'api_key_refused'],
  [503, 'api_not_configured'],
];

export const openOrder: Operation = {
  id: 'openOrder',
  group,
  summary: 'Open a payment link for an order',
  description:
    'One call, and the answer has the address to send the customer to. Its token and signing secret are committed before ' +
    'the service hears of the link, so that its webhooks verify whatever is lost on the way.\n\n' +
    'Call it again until it answers 200 or 201: the same request never makes a second link.',
  body: orderRequest,
  answers: {
    201: { when: 'The link is open.', schema: orderAnswer },
    200: { when: 'The same was asked for before: the order as it stands, with its link.', schema: orderAnswer },
    202: {
      when: 'It takes longer than 10 s, and goes on by itself. The same request finds it.',
      schema: openingAnswer,
      retryAfter: true,
    },
  },
  problems: [
    [409, 'reference_conflict'],
    [409, 'order_cancelled'],
    [409, 'link_expired'],
    [409, 'reference_taken'],
    [422, 'invalid_request'],
    [422, 'refused_by_service'],
    [422, 'link_withheld'],
    [503, 'api_not_configured'],
    [503, 'public_url_not_public'],
    [503, 'api_key_refused'],
  ],
  example: {
    body: {
      reference: 'order-8001',
      title: 'A chair',
      amount: '100.00',
      callbackUrl: 'https://shop.example.com/thanks',
    },
  },
};

export const registerLink: Operation = {
  id: 'registerLink',
  group,
  summary: 'Reserve a link that the shop makes itself, register one, bind or correct its id, correct its secret',
  description:
    'Without `id` it reserves: pass the `webhookUrl` and `webhookSecret` of the answer to the service when you make the ' +
    'link. Called again with `id` it binds the link to the order. With `id` and `webhookSecret` it registers a link that ' +
    'exists.\n\n' +
    'Called again with the same content it changes nothing. Another `webhookSecret`, or another `id` while the order is ' +
    'open, corrects the link: operator only.',
  body: linkRequest,
  answers: {
    201: { when: 'The order and its link are new.', schema: linkAnswer },
    200: { when: 'The order was known: its link as it is now.', schema: linkAnswer },
  },
  problems: [
    [403, 'correction_forbidden'],
    [409, 'reference_conflict'],
    [409, 'link_id_conflict'],
    [409, 'link_id_taken'],
    [422, 'invalid_request'],
  ],
  example: { body: { reference: 'order-8101', amount: '100.00' } },
};

export const listOrders: Operation = {
  id: 'listOrders',
  group,
  summary: 'List and search orders, the newest first',
  query: ordersQuery,
  answers: { 200: { when: 'A page of orders.', schema: ordersPage } },
  example: { query: 'state=awaiting_payment&limit=20' },
};

export const showOrder: Operation = {
  id: 'showOrder',
  group,
  summary: 'One order',
  answers: { 200: { when: 'The order as it stands.', schema: orderAnswer } },
};

export const showTimeline: Operation = {
  id: 'showTimeline',
  group,
  summary: 'Why an order stands where it stands',
  description: 'The answer first, then everything that is known, then what follows. `settled why ORDER` prints it.',
  answers: { 200: { when: 'The order and its story.', schema: timelineAnswer } },
};

export const checkOrder: Operation = {
  id: 'checkOrder',
  group,
  summary: 'Ask the service about an order now',
  description: 'Settles what the service says, and answers after that.',
  answers: { 200: { when: 'What the service said, and the order after it.', schema: checkAnswer } },
  problems: ASKING,
};

export const cancelOrder: Operation = {
  id: 'cancelOrder',
  group,
  summary: 'Cancel an order that nobody has begun to pay',
  description:
    'The service is asked first, so that no paid order is cancelled. Its link cannot be taken back, so it is watched until ' +
    'it expires: what is paid on it all the same is held for a person.',
  answers: { 200: { when: 'The order is cancelled, or was.', schema: orderAnswer } },
  problems: [[409, 'not_cancellable'], ...ASKING],
};

export const adoptLink: Operation = {
  id: 'adoptLink',
  group,
  summary: 'Give an order the link that a person names',
  description:
    'For an order whose reference was taken at the service, and for one that waits because the service may have made its ' +
    'link and does not list it. The money and the reference of the link must be those of the order.',
  body: adoptRequest,
  answers: { 200: { when: 'The order with its link.', schema: adoptAnswer } },
  problems: [
    [409, 'not_adoptable'],
    [503, 'service_unavailable'],
    [503, 'api_key_refused'],
    [503, 'api_not_configured'],
  ],
  example: { body: { id: 'pl_8001' } },
};

export const verifyDelivery: Operation = {
  id: 'verifyDelivery',
  group,
  summary: 'Say what is wrong with a captured delivery',
  description:
    "Verifies it with the signing secret of the order's link, and tries the usual mistakes. Neither the secret nor the " +
    'right code is answered, and nothing is kept. `settled verify --order ORDER` calls it.',
  body: verifyRequest,
  answers: { 200: { when: 'What the delivery turned out to be.', schema: verdictAnswer } },
  problems: [[429, 'rate_limited']],
  example: { body: { signature: 'ab'.repeat(32), timestamp: '1760000000000', bodyBase64: 'eyJpZCI6ImV2dF8xIn0=' } },
};

export const resolveOrder: Operation = {
  id: 'resolveOrder',
  group,
  summary: 'End the holds of an order',
  description:
    'Accepted, the order is paid with the money as it was captured. Rejected, it is cancelled, and flagged `refund_due` ' +
    'until the refund is heard of. The same again changes nothing.',
  body: resolveRequest,
  answers: { 200: { when: 'The order as it was decided.', schema: orderAnswer } },
  problems: [
    [409, 'not_held'],
    [409, 'nothing_left_to_accept'],
  ],
  example: { body: { decision: 'accept', reason: 'the customer wants it after all' } },
};
