/**
 * Deliveries as a service may send them that does not document the payload of its events.
 * All but those named otherwise say the same, and it is true: the order's 100.00 BRL were paid.
 */
export type Shape = {
  name: string;
  /** What is sent for an order and its link. */
  body: (about: About) => string | Buffer;
  /** Where it ends if no API can be asked. */
  ends: End;
};

/** `unread`: attention event_not_understood, with a reason that matches. */
export type End =
  | { is: 'paid'; flags?: string[] }
  | { is: 'held'; reason: string }
  | { is: 'unread'; why: RegExp }
  | { is: 'attention'; kind: string }
  | { is: 'understood'; type: string };

export type About = { reference: string; linkId: string };

const PAID: End = { is: 'paid' };
const UNNAMED: End = { is: 'paid', flags: ['money_unnamed'] };
const HELD: End = { is: 'held', reason: 'status_unclear' };
const NO_STATUS: End = { is: 'unread', why: /no payment status/ };

const TYPE = 'payment_link.payment_status_changed';
const MONEY = { amount: 100, currency: 'BRL' };
const QUOTE = { ...MONEY, paymentMethod: 'PIX', installments: 1, totalBRL: 100 };
const linkOf = ({ reference, linkId }: About) => ({ id: linkId, externalReference: reference, ...MONEY });
const paymentOf = ({ reference }: About) => ({ id: `pay_${reference}`, status: 'COMPLETED', quote: QUOTE });
const saidOf = (about: About) => ({
  paymentLink: linkOf(about),
  paymentStatus: 'COMPLETED',
  latestPayment: paymentOf(about),
});
const eventOf = (about: About) => ({ id: `evt_${about.reference}`, type: TYPE, data: saidOf(about) });

/** Names in snake case, at every depth. */
function snake(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(snake);
  if (typeof value !== 'object' || value === null) return value;
  const name = (camel: string) => camel.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [name(key), snake(inner)]));
}

type Make = (about: About) => unknown;
const json = (make: Make) => (about: About) => JSON.stringify(make(about));
const shape = (name: string, make: Make, ends: End = PAID): Shape => ({ name, body: json(make), ends });
/** The same event with other fields in what it says. */
const says = (name: string, fields: (about: About) => object, ends: End): Shape =>
  shape(name, (about) => ({ ...eventOf(about), data: { ...saidOf(about), ...fields(about) } }), ends);

/** Where an event keeps its parts. */
const envelopes: Shape[] = [
  shape('data', eventOf),
  shape('payload', (a) => ({ id: 'e', type: TYPE, payload: saidOf(a) })),
  shape('flat', (a) => ({ id: 'e', type: TYPE, ...saidOf(a) })),
  shape('link under link', (a) => ({ type: TYPE, data: { ...saidOf(a), paymentLink: null, link: linkOf(a) } })),
  shape('the payment in the link', (a) => ({
    type: TYPE,
    data: { paymentLink: { ...linkOf(a), paymentStatus: 'COMPLETED', latestPayment: paymentOf(a) } },
  })),
  shape('ids and money at the root', (a) => ({
    ...{ id: 'e', type: TYPE, paymentLinkId: a.linkId, externalReference: a.reference, ...MONEY },
    ...{ paymentStatus: 'COMPLETED', latestPayment: { ...paymentOf(a), quote: null } },
  })),
  shape('ids alone', (a) => ({ id: 'e', type: TYPE, linkId: a.linkId, paymentStatus: 'COMPLETED' }), UNNAMED),
  shape('the status alone', () => ({ paymentStatus: 'COMPLETED' }), UNNAMED),
  shape('no type', (a) => ({ id: 'e', data: saidOf(a) })),
  shape('no id', (a) => ({ type: TYPE, data: saidOf(a) })),
  shape('data.object', (a) => ({ id: 'e', type: TYPE, data: { object: saidOf(a) } })),
  shape('data.object that is the link', (a) => ({
    ...{ id: 'e', object: 'event', type: TYPE },
    data: { object: { object: 'payment_link', ...linkOf(a), paymentStatus: 'COMPLETED' } },
  })),
  shape('event', (a) => ({ event: eventOf(a) })),
  shape('event beside what sends it', (a) => ({ webhookId: 'wh_1', attempt: 1, event: eventOf(a) })),
  shape('resource', (a) => ({ id: 'e', event_type: TYPE, resource: saidOf(a) })),
  shape('resource that is the link', (a) => ({
    ...{ id: 'e', event_type: TYPE },
    resource: { ...linkOf(a), paymentStatus: 'COMPLETED', latestPayment: paymentOf(a) },
  })),
  shape('payload within data', (a) => ({ type: TYPE, data: { payload: saidOf(a) } })),
  shape('event, data and object', (a) => ({ event: { type: TYPE, data: { object: saidOf(a) } } })),
  shape('a list of one', (a) => [eventOf(a)]),
  shape('a list of one under data', (a) => ({ type: TYPE, data: [saidOf(a)] })),
  shape('a list of one under event', (a) => ({ event: [eventOf(a)] })),
  shape('the link itself, by its own id', (a) => ({
    ...{ ...linkOf(a), status: 'INACTIVE', url: 'https://pay.example/1', isActive: false },
    ...{ paymentStatus: 'COMPLETED', payments: [paymentOf(a)] },
  })),
  shape('the id of the link as the id of the event', (a) => ({ ...eventOf(a), id: a.linkId })),
];

const types: Shape[] = [
  ...['event', 'eventType', 'event_type', 'kind'].map((name) =>
    shape(`type under ${name}`, (a) => ({ id: 'e', [name]: TYPE, data: saidOf(a) })),
  ),
  shape('type in capitals', (a) => ({ ...eventOf(a), type: TYPE.toUpperCase() })),
  shape('one type at two places', (a) => ({ ...eventOf(a), event: TYPE })),
  shape('two types', (a) => ({ ...eventOf(a), event: 'webhook' }), HELD),
  ...['type', 'event', 'eventType', 'event_type', 'kind'].map((name) =>
    shape(`an unknown type under ${name}`, (a) => ({ id: 'e', [name]: 'payment.captured', data: saidOf(a) }), {
      is: 'unread',
      why: /its type payment\.captured/,
    }),
  ),
  shape('a type that is an object', (a) => ({ ...eventOf(a), type: { name: TYPE } }), {
    is: 'unread',
    why: /its type/,
  }),
  shape('the status in an event of the link', (a) => ({ ...eventOf(a), type: 'payment_link.status_changed' })),
  shape('the status in the event of its creation', (a) => ({ ...eventOf(a), type: 'payment_link.created' })),
];

/** Names and texts. */
const spelled: Shape[] = [
  shape('snake case', (a) => snake(eventOf(a))),
  shape('snake case, flat', (a) => snake({ eventType: TYPE, paymentLinkId: a.linkId, ...saidOf(a) })),
  shape('snake case, within data.object', (a) => ({ type: TYPE, data: { object: snake(saidOf(a)) } })),
  shape('snake case beside camel case', (a) => ({ ...eventOf(a), resource: snake(saidOf(a)) })),
  shape('snake case that says something else', (a) => ({ ...eventOf(a), payment_status: 'PENDING' }), HELD),
  shape('data as text', (a) => ({ ...eventOf(a), data: JSON.stringify(saidOf(a)) })),
  shape('the body as text', (a) => JSON.stringify(eventOf(a))),
  shape('text within text', (a) => ({ type: TYPE, data: JSON.stringify(JSON.stringify(saidOf(a))) })),
  shape('event as text', (a) => ({ event: JSON.stringify(eventOf(a)) })),
  shape('a list of one text', (a) => [JSON.stringify(eventOf(a))]),
  shape('the latest payment as text', (a) => ({
    type: TYPE,
    data: { ...saidOf(a), latestPayment: JSON.stringify(paymentOf(a)) },
  })),
  says(
    'statuses in small letters',
    (a) => ({ paymentStatus: 'completed', latestPayment: { ...paymentOf(a), status: 'Completed' } }),
    PAID,
  ),
  says('names with escapes', () => ({}), PAID),
];
// One that JSON.stringify does not write.
(spelled.at(-1) as Shape).body = (a) => json(eventOf)(a).replace('"paymentStatus"', '"\\u0070aymentStatus"');

/** Money, as it may be written, and as it must not be believed. */
const money: Shape[] = [
  says(
    'amounts as text',
    (a) => ({
      paymentLink: { ...linkOf(a), amount: '100.00' },
      latestPayment: { ...paymentOf(a), quote: { amount: '100', currency: 'BRL' } },
    }),
    PAID,
  ),
  says('an amount with an exponent', (a) => ({ paymentLink: { ...linkOf(a), amount: '1e2' } }), PAID),
  says('a currency in small letters', (a) => ({ paymentLink: { ...linkOf(a), currency: 'brl' } }), PAID),
  says('no quote', (a) => ({ latestPayment: { ...paymentOf(a), quote: null } }), PAID),
  says('no latest payment', () => ({ latestPayment: null }), PAID),
  says('no link', () => ({ paymentLink: null }), PAID),
  says(
    'no money',
    (a) => ({ paymentLink: { id: a.linkId }, latestPayment: { ...paymentOf(a), quote: null } }),
    UNNAMED,
  ),
  says(
    'less',
    (a) => ({
      paymentLink: { ...linkOf(a), amount: 50 },
      latestPayment: { ...paymentOf(a), quote: { ...QUOTE, amount: 50 } },
    }),
    { is: 'held', reason: 'amount_mismatch' },
  ),
  says(
    'another currency',
    (a) => ({
      paymentLink: { ...linkOf(a), currency: 'USD' },
      latestPayment: { ...paymentOf(a), quote: { ...QUOTE, currency: 'USD' } },
    }),
    { is: 'held', reason: 'currency_mismatch' },
  ),
  // No more of them: three quotes in a row that differ from their links are left out.
  ...['R$', { code: 'BRL' }].map((currency) =>
    says(
      `less, in ${JSON.stringify(currency)} for a currency`,
      (a) => ({ latestPayment: { ...paymentOf(a), quote: { ...QUOTE, amount: 50, currency } } }),
      { is: 'held', reason: 'currency_mismatch' },
    ),
  ),
  says(
    'an amount that is none',
    (a) => ({ paymentLink: { ...linkOf(a), amount: { value: 100 } }, latestPayment: null }),
    { is: 'held', reason: 'amount_mismatch' },
  ),
  says('an amount in words', (a) => ({ paymentLink: { ...linkOf(a), amount: 'R$ 100,00' }, latestPayment: null }), {
    is: 'held',
    reason: 'amount_mismatch',
  }),
  says('two amounts', () => ({ amount: 1 }), HELD),
  says('two currencies', () => ({ currency: 'USD' }), HELD),
  says('two quotes', (a) => ({ paymentLink: { ...linkOf(a), latestPayment: { quote: { amount: 1 } } } }), HELD),
  says(
    'the total with interest',
    (a) => ({ latestPayment: { ...paymentOf(a), quote: { ...QUOTE, installments: 3, totalBRL: 103.98 } } }),
    PAID,
  ),
];

const CLOSED: End = { is: 'unread', why: /cannot be opened/ };
const closed = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64');
const STATUS_CHANGED = 'payment_link.status_changed';

/** Payments beside the latest one, or in its place, and text that cannot be opened. */
const payments: Shape[] = [
  says('a payment', (a) => ({ latestPayment: null, payment: paymentOf(a) }), PAID),
  says('payments that are one object', (a) => ({ latestPayment: null, payments: paymentOf(a) }), PAID),
  says('a list of one payment', (a) => ({ latestPayment: null, payments: [paymentOf(a)] }), PAID),
  says('a payment as text', (a) => ({ latestPayment: null, payments: [JSON.stringify(paymentOf(a))] }), PAID),
  says('one payment at three places', (a) => ({ payment: paymentOf(a), payments: [paymentOf(a)] }), PAID),
  says('no payments listed', () => ({ latestPayment: null, payments: [] }), PAID),
  says('payments that have no part of one', () => ({ payments: { count: 2 } }), PAID),
  says('several payments, alike', (a) => ({ payments: [paymentOf(a), paymentOf(a)] }), HELD),
  says('payments that are a word', () => ({ payments: 'two' }), HELD),
  says('a list of a number for payments', () => ({ payments: [2] }), HELD),
  says('true for a payment', () => ({ payment: true }), HELD),
  says('how many payments', () => ({ payments: 1 }), PAID),
  says('how many payments, by their status', () => ({ payments: { total: 1, completed: 1 } }), PAID),
  says('several payments', (a) => ({ payments: [paymentOf(a), { id: 'pay_2', status: 'COMPLETED' }] }), HELD),
  says('payments of two statuses', (a) => ({ payments: [{ ...paymentOf(a), status: 'FAILED' }, paymentOf(a)] }), HELD),
  says('a payment that is text', () => ({ payment: 'pay_1' }), HELD),
  says('payments of which one is text', () => ({ payments: ['pay_1'] }), HELD),
  ...['NOT_STARTED', 'PENDING'].flatMap((paymentStatus) => [
    says(`${paymentStatus} beside a latest payment`, () => ({ paymentStatus }), HELD),
    says(
      `${paymentStatus} beside a payment`,
      (a) => ({ paymentStatus, latestPayment: null, payment: paymentOf(a) }),
      HELD,
    ),
    shape(
      `${paymentStatus} beside a list of one payment in the link`,
      (a) => ({ type: TYPE, data: { paymentLink: { ...linkOf(a), paymentStatus, payments: [paymentOf(a)] } } }),
      HELD,
    ),
    says(
      `${paymentStatus} beside several payments`,
      (a) => ({ paymentStatus, latestPayment: null, payments: [{ status: 'PENDING' }, paymentOf(a)] }),
      HELD,
    ),
  ]),
  ...[STATUS_CHANGED, 'payment_link.created'].flatMap((type) => [
    shape(
      `${type} with a list of one payment`,
      (a) => ({ type, data: { paymentLink: { ...linkOf(a), status: 'INACTIVE', payments: [paymentOf(a)] } } }),
      HELD,
    ),
    shape(`${type} with a payment`, (a) => ({ type, data: { payment_link: linkOf(a), payment: paymentOf(a) } }), HELD),
    shape(`${type} with closed text`, (a) => ({ id: 'e', type, data: closed(saidOf(a)) }), CLOSED),
    shape(`${type} with a list of closed text`, (a) => ({ type, payload: [closed(saidOf(a))] }), CLOSED),
    shape(`${type} with closed text as its object`, (a) => ({ type, object: closed(saidOf(a)) }), CLOSED),
    shape(
      `${type}, five objects deep`,
      (a) => ({ type, data: { data: { data: { data: { data: saidOf(a) } } } } }),
      CLOSED,
    ),
  ]),
  shape('PENDING beside closed text', (a) => ({ paymentStatus: 'PENDING', data: closed(saidOf(a)) }), CLOSED),
  shape('COMPLETED beside closed text', (a) => ({ ...saidOf(a), type: TYPE, data: closed(saidOf(a)) }), HELD),
  shape('a word and an address', (a) => ({
    ...eventOf(a),
    object: 'payment_link.event',
    resource: 'https://pay.example/v1/payment-links/1',
  })),
];

/** Money that the payment itself names, with or without a quote. */
const ownMoney: Shape[] = (
  [
    ['the order', { amount: 100, currency: 'BRL', quote: null }, PAID],
    ['the order, beside a quote', { amount: '100.00' }, PAID],
    ['more, as with interest', { amount: 103.98, currency: 'BRL', quote: null }, PAID],
    ['the order, beside a quote with interest', { ...MONEY, quote: { ...QUOTE, amount: 103.98 } }, PAID],
    ['the order, beside a quote that was converted', { ...MONEY, quote: { amount: 18, currency: 'USD' } }, PAID],
    ['less', { amount: 50, currency: 'BRL', quote: null }, HELD],
    ['less, in no currency', { amount: 50, quote: null }, HELD],
    ['less than its quote', { amount: 50, currency: 'BRL' }, HELD],
    ['more than its quote', { amount: 150, currency: 'BRL' }, HELD],
    ['another currency than its quote', { currency: 'USD' }, HELD],
    ['no amount', { amount: {}, quote: null }, HELD],
  ] as [string, object, End][]
).map(([name, fields, ends]) =>
  says(`a payment of ${name}`, (a) => ({ latestPayment: { ...paymentOf(a), ...fields } }), ends),
);

/** Names of things, and statuses. */
const named: Shape[] = [
  says('another reference', (a) => ({ paymentLink: { ...linkOf(a), externalReference: 'another-order' } }), {
    is: 'held',
    reason: 'reference_mismatch',
  }),
  says('two references', () => ({ externalReference: 'another-order' }), HELD),
  says('a reference that is an object', (a) => ({ paymentLink: { ...linkOf(a), externalReference: {} } }), HELD),
  says('a reference that is a list', (a) => ({ externalReference: [a.reference] }), HELD),
  says('a reference that is true', () => ({ externalReference: true }), HELD),
  says('a link id that is an object', (a) => ({ paymentLink: { ...linkOf(a), id: { value: a.linkId } } }), HELD),
  says('a link id that is a list', (a) => ({ paymentLinkId: [a.linkId] }), HELD),
  says('a link id that is false', () => ({ link_id: false }), HELD),
  says('a link that is true', () => ({ link: true }), HELD),
  says('two payment ids', (a) => ({ paymentLink: { ...linkOf(a), latestPayment: { id: 'pay_2' } } }), HELD),
  says('a quote that is a number', (a) => ({ latestPayment: { ...paymentOf(a), quote: 100 } }), HELD),
  says('a status that is a list, at the link', (a) => ({ link: { ...linkOf(a), paymentStatus: ['REFUNDED'] } }), HELD),
  says('a latest payment REFUNDED', (a) => ({ latestPayment: { ...paymentOf(a), status: 'REFUNDED' } }), HELD),
  says('a latest payment FAILED', (a) => ({ latestPayment: { ...paymentOf(a), status: 'FAILED' } }), HELD),
  says('nulls', () => ({ amount: null, externalReference: null, paymentLinkId: null, link: null }), PAID),
  says('one amount in two spellings', () => ({ amount: '100.00', currency: 'brl' }), PAID),
  says('an empty list for data', () => ({ data: [] }), PAID),
  says('a payment id that is false', (a) => ({ latestPayment: { ...paymentOf(a), id: false } }), HELD),
  says('a payment id that is an object', (a) => ({ latestPayment: { ...paymentOf(a), id: {} } }), HELD),
  says('a payment without an id', (a) => ({ latestPayment: { ...paymentOf(a), id: null } }), PAID),
  says('a payment id that is a number', (a) => ({ latestPayment: { ...paymentOf(a), id: 17 } }), PAID),
  says('another link', () => ({ paymentLinkId: 'pl_of_another_order' }), { is: 'attention', kind: 'link_mismatch' }),
  says('a link that is a list', (a) => ({ paymentLink: [linkOf(a)] }), HELD),
  says('a link that is its address', () => ({ paymentLink: null, link: 'https://pay.example/s/1' }), PAID),
  says('a latest payment that is text', () => ({ latestPayment: 'pay_1' }), HELD),
  says('a latest payment that is a list', (a) => ({ latestPayment: [paymentOf(a)] }), HELD),
  says('a latest payment of another status', (a) => ({ latestPayment: { ...paymentOf(a), status: 'PENDING' } }), HELD),
  says('COMPLETED at the payment alone', () => ({ paymentStatus: null }), HELD),
  says('another status at the link', (a) => ({ paymentLink: { ...linkOf(a), paymentStatus: 'PENDING' } }), HELD),
  says('an unknown status', (a) => ({ paymentStatus: 'PAID', latestPayment: { id: `p_${a.reference}` } }), {
    is: 'unread',
    why: /payment status PAID/,
  }),
  says('a status that is an object', () => ({ paymentStatus: { code: 'COMPLETED' }, latestPayment: null }), {
    is: 'unread',
    why: /payment status OBJECT/,
  }),
  says(
    'a status under another name',
    () => ({ paymentStatus: null, latestPayment: null, state: 'COMPLETED' }),
    NO_STATUS,
  ),
];

/** What no place holds. */
const unread: Shape[] = [
  shape('several events', (a) => [eventOf(a), eventOf(a)], { is: 'unread', why: /a list of 2/ }),
  shape('several under data', (a) => ({ type: TYPE, data: [saidOf(a), saidOf(a)] }), {
    is: 'unread',
    why: /a list of 2/,
  }),
  shape('several under event', (a) => ({ ...eventOf(a), event: [{}, {}, {}] }), { is: 'unread', why: /a list of 3/ }),
  shape('events', (a) => ({ events: [eventOf(a)] }), NO_STATUS),
  shape('other names', () => ({ evento: 'pagamento', situacao: 'PAGO', valor: 100 }), NO_STATUS),
  shape('an empty object', () => ({}), NO_STATUS),
  shape('an empty list', () => [], { is: 'unread', why: /no JSON object/ }),
  shape('a number', () => 42, { is: 'unread', why: /no JSON object/ }),
  shape('null', () => null, { is: 'unread', why: /no JSON object/ }),
  shape('words', () => 'COMPLETED', { is: 'unread', why: /no JSON object/ }),
  shape('five objects deep', (a) => ({ data: { data: { data: { data: { data: saidOf(a) } } } } }), NO_STATUS),
  shape('text in text in text', (a) => JSON.stringify(JSON.stringify(JSON.stringify(eventOf(a)))), {
    is: 'unread',
    why: /no JSON object/,
  }),
];

const NO_JSON: End = { is: 'unread', why: /not readable JSON/ };
const bytes = (name: string, body: (text: string) => string | Buffer, ends: End = PAID): Shape => ({
  name,
  body: (about) => body(json(eventOf)(about)),
  ends,
});

/** Bytes of the body. */
const encodings: Shape[] = [
  bytes('a byte order mark', (text) => `\ufeff${text}`),
  bytes('indented', (text) => JSON.stringify(JSON.parse(text), null, 2)),
  bytes('line ends around it', (text) => `\r\n${text}\r\n`),
  bytes('UTF-16', (text) => Buffer.from(text, 'utf16le'), NO_JSON),
  bytes('bytes that are not UTF-8', (text) => Buffer.from(text.replace('evt_', 'évt_'), 'latin1'), NO_JSON),
  bytes('a form', (text) => `payload=${encodeURIComponent(text)}`, NO_JSON),
  bytes('base64', (text) => Buffer.from(text).toString('base64'), NO_JSON),
  bytes('two texts', (text) => `${text}\n${text}`, NO_JSON),
  bytes('half a text', (text) => text.slice(0, -2), NO_JSON),
  bytes('XML', () => '<event><paymentStatus>COMPLETED</paymentStatus></event>', NO_JSON),
  bytes('nothing', () => '', NO_JSON),
];

/** Understood, and about no payment: these alone may pass without a word, and `why` names them. */
const NO_NEWS = [
  ['payment_link.created', (a: About) => ({ paymentLink: linkOf(a) })],
  ['payment_link.status_changed', (a: About) => ({ paymentLink: { ...linkOf(a), status: 'ACTIVE' } })],
  [TYPE, () => ({ paymentStatus: 'NOT_STARTED' })],
] as const;
const silent: Shape[] = NO_NEWS.map(([type, fields]) => ({
  name: `no news: ${type}`,
  body: json((a) => ({ id: 'e', type, data: fields(a) })),
  ends: { is: 'understood', type },
}));

export const SHAPES: readonly Shape[] = [
  ...envelopes,
  ...types,
  ...spelled,
  ...money,
  ...payments,
  ...ownMoney,
  ...named,
  ...unread,
  ...encodings,
  ...silent,
];
