/**
 * settled's client for shops: one file that needs nothing but Node 20 or newer. Copy it, or import it from the package as
 * `settled/client`. It belongs on your server, because no browser may see the token. docs/integrate.md says what a shop
 * does with each notice; examples/express and examples/fastify are whole shops.
 *
 *   const settled = settledClient({ url: 'http://127.0.0.1:8788', token, secret });
 *   const { payUrl } = await settled.open({ reference: 'order-5001', title: 'A chair', amount: '100.00' });
 *
 *   for await (const page of settled.feed({ after: storedCursor })) {
 *     // One transaction of your database: what the page says, and how far you have read.
 *     await transaction(async (db) => {
 *       for (const notice of page.notices) await record(db, notice.data.order);
 *       await storeCursor(db, page.cursor);
 *     });
 *   }
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

export type ClientOptions = {
  /** settled's private API, such as `http://127.0.0.1:8788`. */
  url: string;
  /** settled's `SETTLED_SHOP_TOKEN`. */
  token: string;
  /** settled's `SETTLED_SHOP_SECRET`, which `verify` needs. While you change it: both, with a space between them. */
  secret?: string | undefined;
  /** How long a call may take, with its retries. Default: 20 000 ms. The feed retries without end. */
  callMsMax?: number;
  /** How long one attempt may take. Default: 15 000 ms, because settled waits up to 10 s for the service. */
  attemptMsMax?: number;
  /** Learns of each failed attempt that the client repeats: write it to your log. */
  onRetry?: (failed: SettledError, waitMs: number) => void;
};

export type FeedOptions = {
  /**
   * The cursor that you stored. `null`: from the beginning, as a shop does that has stored none. `'now'`: only what comes
   * from now on; the first page then has no notices, and the cursor to store before you open your first order.
   */
  after: string | null;
  /** Whether to wait for further notices, until `signal` ends it (the default), or to end when all are read. */
  follow?: boolean;
  /** Notices of a page, from 1 to 1000. Default: 100. */
  limit?: number;
  /** Ends the iteration without an error. */
  signal?: AbortSignal;
};

/** Store `cursor` in the transaction in which you record `notices`. While `more` is true, their orders may be out of date. */
export type FeedPage = Answer<'readFeed'> & {
  /** settled was restored from a backup, and this is read again from the beginning: what you know has versions you know. */
  isAgain: boolean;
};

/** A notice, from the callback or the feed. The id is the same in both, and over all attempts. */
export type ReceivedNotice = Notice & { id: string };

/** `payUrl`: where the customer pays; null if they cannot, or not yet. `opening`: why not yet; then open again later. */
export type Opened = { order: Order; payUrl: string | null; opening: Opening | null };
type Opening = Extract<Answer<'openOrder'>, { opening: unknown }>['opening'];

export type SettledClient = ReturnType<typeof settledClient>;
export type OperationName = keyof Operations;
export type Given<Name extends OperationName> = Operations[Name]['given'];
export type Answer<Name extends OperationName> = Operations[Name]['answer'];

/** What the client itself says: no answer came; something else than settled answered; a callback is not genuine. */
export type OwnCode = 'no_answer' | 'not_settled';

/** A call that failed. `message` says what to do. Every call may be repeated: none does anything twice. */
export class SettledError extends Error {
  override readonly name = 'SettledError';
  /** settled's code of the problem (docs/errors.md), or the client's own. A later settled may say others. */
  readonly code: ProblemCode | OwnCode;
  /** The HTTP status of the answer; null if none came. */
  readonly answered: number | null;
  /** After how many seconds a retry makes sense, if settled says it. */
  readonly retryAfterSeconds: number | null;
  /** Finds the request in settled's log. */
  readonly requestId: string | null;
  /** What is wrong with which field. */
  readonly errors: readonly { path: string; detail: string }[];

  constructor(message: string, code: ProblemCode | OwnCode, { cause, ...more }: Partial<SettledError> = {}) {
    super(message, { cause });
    this.code = code;
    this.answered = more.answered ?? null;
    this.retryAfterSeconds = more.retryAfterSeconds ?? null;
    this.requestId = more.requestId ?? null;
    this.errors = more.errors ?? [];
  }
}

/** A callback that is not genuine. Answer 401, as Express and Fastify do with an error of this status, and store nothing. */
export class NotGenuineError extends Error {
  override readonly name = 'NotGenuineError';
  readonly status = 401;
  readonly statusCode = 401;
}

const CALL_MS_MAX = 20_000;
const ATTEMPT_MS_MAX = 15_000;
const RETRY_MS = { first: 250, max: 30_000 } as const;
const RETRY_AFTER_SECONDS_MAX = 300;
const FEED_WAIT_SECONDS = 30;
const FEED_PAUSE_MS = 1_000;
const TOLERANCE_SECONDS = 300;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

/** Throws a TypeError if an option cannot be right. Sends nothing. */
export function settledClient(options: ClientOptions) {
  const { secret, callMsMax = CALL_MS_MAX } = options;
  const keys = secret === undefined ? [] : readSecret(secret);
  const base = readUrl(options.url);
  if (!/^[\x21-\x7e]+$/.test(options.token ?? '')) {
    throw new TypeError("token: give settled's SETTLED_SHOP_TOKEN, without spaces or line ends");
  }
  const request = requester({ ...options, url: base });

  /** Calls any operation that settled offers to a shop, by its id in the OpenAPI document. Throws SettledError. */
  async function call<Name extends OperationName>(name: Name, given: Given<Name>): Promise<Answer<Name>> {
    return request(name, given, { callMsMax });
  }

  return {
    call,

    /**
     * Opens a payment link. Store the reference before you call, and send the customer to `payUrl`. The same request again
     * returns the same link. Throws `order_cancelled` or `link_expired` if the order can no longer be paid.
     */
    async open(order: Given<'openOrder'>['body']): Promise<Opened> {
      const answer = await call('openOrder', { body: order });
      const opening = 'opening' in answer ? answer.opening : null;
      return { order: answer.order, payUrl: payUrlOf(answer.order), opening };
    },

    /** The order as settled knows it; null if settled does not know it. */
    async get(reference: string): Promise<Order | null> {
      try {
        return (await call('showOrder', { path: { reference } })).order;
      } catch (error) {
        if (error instanceof SettledError && error.code === 'not_found') return null;
        throw error;
      }
    },

    /** Has settled ask the service now, for a customer who says that they paid. */
    check: (reference: string) => call('checkOrder', { path: { reference } }),

    /** Cancels an order whose payment has not begun. Throws `not_cancellable` if it has. */
    cancel: async (reference: string): Promise<Order> => (await call('cancelOrder', { path: { reference } })).order,

    /**
     * Follows the feed, a page at a time. It asks for the next page only when you have done with this one, so what you
     * committed is what it continues from, in this process and in the next. It retries until settled answers, and begins
     * anew if settled was restored. It throws what a retry cannot repair, such as a wrong token.
     */
    feed: (feed: FeedOptions) => readFeed(request, { callMsMax, ...feed }),

    /**
     * The notice in a callback, if settled signed these bytes within the last 5 minutes. Throws NotGenuineError otherwise.
     * @param body as it came: a Buffer or its text, before anything parses it
     * @param nowMs your clock, for tests
     */
    verify(body: Uint8Array | string, headers: CallbackHeaders, nowMs = Date.now()): ReceivedNotice {
      if (keys.length === 0) throw new TypeError("verify needs the option secret: settled's SETTLED_SHOP_SECRET");
      return verifyCallback(keys, body, headers, nowMs);
    },
  };
}

/** Where the customer pays the order; null if they cannot: not yet, not any more, or because settled withholds the link. */
export function payUrlOf({ state, link }: Order, nowMs = Date.now()): string | null {
  const isOver = /^(EXPIRED|INACTIVE)$/.test(link?.status ?? '') || Date.parse(link?.expiresAt ?? '') <= nowMs;
  return state !== 'awaiting_payment' || isOver ? null : (link?.url ?? null);
}

async function* readFeed(
  request: ReturnType<typeof requester>,
  { callMsMax, after, follow = true, limit = 100, signal }: FeedOptions & { callMsMax: number },
): AsyncGenerator<FeedPage, void, undefined> {
  const patience = { callMsMax: follow ? Number.POSITIVE_INFINITY : callMsMax, signal };
  let [cursor, wait, isAgain] = [after, 0, false];
  for (;;) {
    const askedMs = performance.now();
    let page: Answer<'readFeed'>;
    try {
      const query = { limit, wait, ...(cursor === null ? {} : { after: cursor }) };
      page = await request('readFeed', { query }, patience);
      const isNothing = page.notices.length === 0 && page.cursor === cursor;
      const isAtOnce = performance.now() - askedMs < FEED_PAUSE_MS;
      // settled does not wait if it is stopping, or if it has many readers that wait; and a proxy may repeat itself.
      if (isNothing && (wait > 0 || page.more) && isAtOnce) await pause(FEED_PAUSE_MS, null, { signal });
      if (isNothing && !follow) return;
      wait = page.more ? 0 : FEED_WAIT_SECONDS;
      if (isNothing) continue;
    } catch (error) {
      if (signal?.aborted) return;
      const isOfBefore = error instanceof SettledError && error.code === 'cursor_from_before_restore';
      if (!isOfBefore || cursor === null) throw error;
      [cursor, wait, isAgain] = [null, 0, true];
      continue;
    }
    cursor = page.cursor;
    yield { ...page, isAgain };
    if (page.more) continue;
    if (!follow) return;
    isAgain = false;
  }
}

type Patience = { callMsMax: number; signal?: AbortSignal | undefined };

function requester({ url, token, attemptMsMax = ATTEMPT_MS_MAX, onRetry }: ClientOptions) {
  /** One attempt: what settled answered, or why there is no such answer. */
  async function attempt(name: OperationName, given: AnyGiven, patience: Patience): Promise<unknown> {
    const [method, address] = addressOf(name, given);
    // What settled may wait with its answer counts for nothing.
    const waitMs = 1_000 * ((given.query as { wait?: number } | undefined)?.wait ?? 0);
    const timeout = AbortSignal.timeout(Math.ceil(Math.min(attemptMsMax, patience.callMsMax) + waitMs));
    // AbortSignal.any would have a signal that lasts keep something of each attempt.
    const over = new AbortController();
    const { signal } = over;
    const end = () => over.abort((timeout.aborted ? timeout : patience.signal)?.reason);
    for (const one of [timeout, patience.signal]) one?.addEventListener('abort', end);
    if (patience.signal?.aborted) end();
    const body = given.body === undefined ? null : JSON.stringify(given.body);
    const headers = {
      authorization: `Bearer ${token}`,
      ...(body === null ? {} : { 'content-type': 'application/json' }),
    };
    try {
      const response = await fetch(url + address, { method, headers, body, redirect: 'manual', signal });
      return readAnswer(name, response, await textOf(response, url), url);
    } catch (cause) {
      return cause instanceof SettledError ? cause : noAnswer(url, cause);
    } finally {
      for (const one of [timeout, patience.signal]) one?.removeEventListener('abort', end);
    }
  }

  return async <Of extends OperationName>(name: Of, given: Given<Of>, patience: Patience): Promise<Answer<Of>> => {
    const endMs = performance.now() + patience.callMsMax;
    for (let attempts = 1, leftMs = patience.callMsMax; ; attempts++) {
      const answer = await attempt(name, given, { ...patience, callMsMax: leftMs });
      if (!(answer instanceof SettledError)) return answer as Answer<Of>;
      const waitMs = retryMs(answer, attempts);
      if (patience.signal?.aborted || waitMs === null || performance.now() + waitMs > endMs) throw answer;
      onRetry?.(answer, waitMs);
      await pause(waitMs, undefined, { signal: patience.signal });
      leftMs = endMs - performance.now();
      // A process that is busy comes back late.
      if (leftMs <= 0) throw answer;
    }
  };
}

type AnyGiven = { path?: Record<string, string>; query?: object; body?: object };

function addressOf(name: OperationName, { path, query = {} }: AnyGiven): [method: string, address: string] {
  const [method = '', pattern = ''] = OPERATIONS[name].split(' ');
  const address = pattern.replace(/\{(\w+)\}/g, (_, part: string) => encodeURIComponent(path?.[part] ?? ''));
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(Object.fromEntries(pairs.map(([key, value]) => [key, String(value)])));
  return [method, pairs.length === 0 ? address : `${address}?${search}`];
}

/** How long to wait before the next attempt; null if retrying alone changes nothing. */
function retryMs({ code, answered, retryAfterSeconds }: SettledError, attempts: number): number | null {
  if (retryAfterSeconds) return Math.min(retryAfterSeconds, RETRY_AFTER_SECONDS_MAX) * 1_000;
  // A problem of settled without Retry-After needs a person. Without its form, a proxy has said it.
  const isOfProxy = code === 'not_settled' && [429, 502, 503, 504].includes(answered ?? 0);
  const isPassing = code === 'no_answer' || isOfProxy || retryAfterSeconds === 0;
  return isPassing ? Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** (attempts - 1)) * (0.5 + Math.random() / 2) : null;
}

/** The whole answer. Throws a SettledError if it is longer than any of settled's but a long CSV file. */
async function textOf({ body, status: answered }: Response, url: string): Promise<string> {
  const [reader, parts] = [body?.getReader(), [] as Uint8Array[]];
  for (let bytes = 0; bytes <= ANSWER_BYTES_MAX; bytes += parts.at(-1)?.length ?? 0) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) return new TextDecoder().decode(Buffer.concat(parts));
    parts.push(value);
  }
  await reader?.cancel();
  const message = `${url} answered ${answered} with more than 64 MiB. Ask for less: set filters.`;
  throw new SettledError(message, 'not_settled', { answered });
}

/** What an answer has, if it is not an order. */
const HAS: Partial<Record<string, string[]>> = { listOrders: ['orders'], readFeed: ['notices', 'cursor'] };

function readAnswer(name: OperationName, response: Response, text: string, url: string): unknown {
  const { status, headers } = response;
  const type = headers.get('content-type') ?? '';
  const after = headers.get('retry-after');
  const about = {
    answered: status,
    requestId: headers.get('x-request-id'),
    retryAfterSeconds: after !== null && /^[0-9]{1,9}$/.test(after) ? Number(after) : null,
  };
  try {
    if (response.ok && name === 'ordersCsv' && type.startsWith('text/csv')) return text;
    if (response.ok && name !== 'ordersCsv' && type.startsWith('application/json')) {
      const answer = JSON.parse(text);
      if ((HAS[name] ?? ['order']).every((part) => answer[part] != null)) return answer;
    }
    if (type.startsWith('application/problem+json')) {
      const { title, detail, errors = [] } = JSON.parse(text);
      const hint = status === 401 || status === 403 ? " (token must be settled's SETTLED_SHOP_TOKEN)" : '';
      const isOurs = typeof title === 'string' && typeof detail === 'string' && /^[a-z_]+$/.test(title);
      if (isOurs) return new SettledError(detail + hint, title as ProblemCode, { ...about, errors });
    }
  } catch {
    // Cut off, or not what its type says.
  }
  const to = headers.get('location');
  const where = to === null ? '' : ` and leads to ${to}`;
  const advice = "Is url settled's private API (port 8788; the public listener has another), and what is between?";
  const message = `${url} answered ${status}${where}, but not as settled does. ${advice}`;
  return new SettledError(message, 'not_settled', about);
}

function noAnswer(url: string, cause: unknown): SettledError {
  const { name, cause: inner, message } = cause as Error & { cause?: { code?: string } };
  const why = name === 'TimeoutError' ? 'within the time of an attempt' : `(${inner?.code ?? message})`;
  const advice = 'Is settled running, and is this the address of its private API?';
  return new SettledError(`${url} did not answer ${why}. ${advice}`, 'no_answer', { cause });
}

function readUrl(url: string): string {
  const { href, protocol, username, password, search, hash } = new URL(URL.canParse(url) ? url : 'none:');
  if (/^https?:$/.test(protocol) && username + password + search + hash === '') return href.replace(/[/?#]+$/, '');
  // Not what was given: it may have a password.
  const what = "give the address of settled's private API, such as http://127.0.0.1:8788";
  throw new TypeError(`url: ${what}, without a user name, a password, a query or a fragment`);
}

function readSecret(secret: string): Buffer[] {
  return secret
    .trim()
    .split(/\s+/)
    .map((one) => {
      const key = /^whsec_[A-Za-z0-9+/]+={0,2}$/.test(one) ? Buffer.from(one.slice('whsec_'.length), 'base64') : null;
      if (key !== null && key.length >= 24 && key.length <= 64) return key;
      throw new TypeError("secret: give settled's SETTLED_SHOP_SECRET: whsec_ and 24 to 64 bytes in base64");
    });
}

/** Headers as Node, a framework or the Fetch API gives them. */
export type CallbackHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | string[] | undefined>>;

/** Standard Webhooks: HMAC-SHA256 over the id, the time and the body's bytes, with a point between them. */
function verifyCallback(
  keys: readonly Buffer[],
  body: unknown,
  headers: CallbackHeaders,
  nowMs: number,
): ReceivedNotice {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    headerOf(headers, `webhook-${name}`),
  );
  if (!id || !timestamp || !signatures) throw new NotGenuineError('A webhook- header is missing: settled sends three.');
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) {
    throw new TypeError('verify needs the body as it came, not parsed: in Express, put express.raw before this route');
  }
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw new NotGenuineError('webhook-timestamp is not a number of seconds.');
  const expected = keys.map((key) => {
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
    return Buffer.from(`v1,${mac.digest('base64')}`);
  });
  const given = signatures.split(' ').map((signature) => Buffer.from(signature));
  // Without a shortcut, so that the time does not tell which one is nearly right.
  const right = expected.flatMap((one) =>
    given.filter((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (right.length === 0) {
    throw new NotGenuineError(
      'The signature is wrong: another secret signed it, or these are not the bytes that came.',
    );
  }
  // So, and not the other way round, because NaN is not greater than anything.
  if (!(Math.abs(nowMs / 1_000 - Number(timestamp)) <= TOLERANCE_SECONDS)) {
    throw new NotGenuineError('webhook-timestamp is more than 5 minutes from now: sent again, or a wrong clock.');
  }
  return { ...JSON.parse(typeof body === 'string' ? body : new TextDecoder().decode(body)), id };
}

function headerOf(headers: CallbackHeaders, name: string): string | undefined {
  const found =
    typeof headers.get === 'function'
      ? headers.get(name)
      : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof found === 'string' ? found : undefined;
}

// Below: generated from settled's OpenAPI document by "npm run tests -- --project shared test/docs/generated.test.ts -u".

/** The operations of a shop, by their ids. */
export const OPERATIONS = {
  openOrder: 'POST /v1/orders',
  listOrders: 'GET /v1/orders',
  registerLink: 'POST /v1/links',
  ordersCsv: 'GET /v1/orders.csv',
  showOrder: 'GET /v1/orders/{reference}',
  showTimeline: 'GET /v1/orders/{reference}/timeline',
  checkOrder: 'POST /v1/orders/{reference}/check',
  cancelOrder: 'POST /v1/orders/{reference}/cancel',
  readFeed: 'GET /v1/feed',
} as const;

/** What each operation is given, and what it answers. */
export type Operations = {
  /** Open a payment link for an order */
  openOrder: {
    given: {
      body: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
        /** What the customer reads. */
        title: string;
        /** A decimal, taken as it is written: more than 25, with the currency's decimals and at most 15 digits. */
        amount: string | number;
        /** ISO 4217, or one of `SETTLED_CURRENCY`; by default its first. */
        currency?: string;
        /** More for the customer to read. */
        description?: string;
        /** Within a year, else 422. */
        expiresAt?: string;
        /** Handed on as it is: at most 8192 bytes, 8 levels, and exact numbers. */
        metadata?: Record<string, unknown>;
        /** Where the customer is sent after paying: http or https, without spaces, a user name or a password. */
        callbackUrl?: string;
        /** Who buys: people find the order by it. */
        customer?: {
          /** Null or blank: not known. */
          name?: string | null;
          /** Null or blank: not known. */
          email?: string | null;
        } | null;
      };
    };
    answer:
      | { order: Order }
      | {
          order: Order;
          opening: {
            /** Why the last attempt to open the link failed, and when settled tries next. */
            detail: string;
            /** Null while settled is trying. */
            nextAttemptAt: string | null;
          };
        };
  };
  /** List and search orders, the newest first */
  listOrders: {
    given: {
      query?: {
        /** Rows of a page. */
        limit?: number;
        /** The `nextCursor` of the page before, unchanged. */
        cursor?: string;
        /** `true`: also answer `count`, how many rows match. */
        count?: 'true' | 'false';
        /**
         * A reference or its beginning; the id or the address of a link; the id of a payment, an event or a
         * notice; words of the reference, the title and the customer, or their first 3 letters or more; a
         * customer's e-mail address or name; or an amount, like `150`, `150,00`, `R$ 150,00` or `BRL 150`.
         * settled looks for all that it may be: see docs/api.md.
         */
        q?: string;
        /** Only those in this state, or in one of several with commas between. */
        state?: string | Array<string>;
        /** Only those with this flag. */
        flag?: Flag;
        /** `true`: only those whose balance is more than their amount. */
        overpaid?: 'true';
        /** Only those with an open matter of this kind, or `hold`. */
        attention?: 'hold' | AttentionKind;
        /** Only those with an open hold for this reason. */
        hold?: HoldReason;
        /** Only those created since then. */
        since?: string;
        /** Only those created until then. */
        until?: string;
        /** Only those paid since then. */
        paidSince?: string;
        /** Only those paid until then. */
        paidUntil?: string;
        /** Only those that ask this or more. */
        amountFrom?: string;
        /** Only those that ask this or less. */
        amountTo?: string;
        /** Only those that ask in this currency. */
        currency?: string;
      };
    };
    answer: {
      orders: Array<ListedOrder>;
      /** Give it back as `cursor` for the next page; null on the last one. */
      nextCursor: string | null;
      count?: Count;
    };
  };
  /** Reserve a link that the shop makes itself, register one, bind or correct its id, correct its secret */
  registerLink: {
    given: {
      body: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
        /** A decimal, taken as it is written: more than 25, with the currency's decimals and at most 15 digits. */
        amount: string | number;
        /** ISO 4217, or one of `SETTLED_CURRENCY`; by default its first. */
        currency?: string;
        /** Who buys: people find the order by it. */
        customer?: {
          /** Null or blank: not known. */
          name?: string | null;
          /** Null or blank: not known. */
          email?: string | null;
        } | null;
        /** The link's id at the service. */
        id?: string;
        /** At least 16 bytes in UTF-8. */
        webhookSecret?: string;
      };
    };
    answer: {
      link: Link & {
        /** Give it to the service as `webhookUrl`. */
        webhookUrl: string;
        /** Give it to the service as `webhookSecret`. */
        webhookSecret?: string;
      };
      order: Order;
    };
  };
  /** Orders as CSV */
  ordersCsv: {
    given: {
      query?: {
        /**
         * A reference or its beginning; the id or the address of a link; the id of a payment, an event or a
         * notice; words of the reference, the title and the customer, or their first 3 letters or more; a
         * customer's e-mail address or name; or an amount, like `150`, `150,00`, `R$ 150,00` or `BRL 150`.
         * settled looks for all that it may be: see docs/api.md.
         */
        q?: string;
        /** Only those in this state, or in one of several with commas between. */
        state?: string | Array<string>;
        /** Only those with this flag. */
        flag?: Flag;
        /** `true`: only those whose balance is more than their amount. */
        overpaid?: 'true';
        /** Only those with an open matter of this kind, or `hold`. */
        attention?: 'hold' | AttentionKind;
        /** Only those with an open hold for this reason. */
        hold?: HoldReason;
        /** Only those created since then. */
        since?: string;
        /** Only those created until then. */
        until?: string;
        /** Only those paid since then. */
        paidSince?: string;
        /** Only those paid until then. */
        paidUntil?: string;
        /** Only those that ask this or more. */
        amountFrom?: string;
        /** Only those that ask this or less. */
        amountTo?: string;
        /** Only those that ask in this currency. */
        currency?: string;
        /** `true`: a byte order mark first, as Excel needs it for ã. */
        bom?: 'true' | 'false';
      };
    };
    answer: string;
  };
  /** One order */
  showOrder: {
    given: {
      path: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
      };
    };
    answer: { order: Order };
  };
  /** Explain an order's state */
  showTimeline: {
    given: {
      path: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
      };
    };
    answer: {
      order: Order;
      /** Whether the order is paid, and why or why not. */
      answer: string;
      /** In order of time: of each kind, at most the newest 500. */
      entries: Array<TimelineEntry>;
      /** What settled does from here on, and what a person should do. */
      next: Array<string>;
      /** What the service last said about the order's payment; null if it has said nothing. */
      service: {
        at: string;
        /** The event, or the row that keeps the API's answer. */
        event: string;
        /** True if settled asked; false if a webhook came. */
        isReading: boolean;
        says: Array<string>;
      } | null;
      /** The last decision of a person about held money; null if there was none. */
      decided: {
        decision: 'accept' | 'reject';
        at: string;
        /** The person or the named token; otherwise null. */
        by: string | null;
        reason: string | null;
      } | null;
      /** Where the service, settled and the shop differ; empty if they agree. */
      differences: Array<string>;
    };
  };
  /** Ask the service about an order now */
  checkOrder: {
    given: {
      path: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
      };
    };
    answer: {
      /** The order as it is after the service answered. */
      order: Order;
      service: {
        linkStatus: string;
        /** `NOT_STARTED`, `PENDING` or `COMPLETED`; null if not named. */
        paymentStatus: string | null;
      };
    };
  };
  /** Cancel an order whose payment has not begun */
  cancelOrder: {
    given: {
      path: {
        /** The order's name, and the `externalReference` of its link. */
        reference: string;
      };
    };
    answer: { order: Order };
  };
  /** Read every notice after a cursor, the oldest first */
  readFeed: {
    given: {
      query?: {
        /** The `cursor` read so far; none: from the beginning; `now`: that of the end. */
        after?: string;
        /** Notices of a page. */
        limit?: number;
        /** Seconds to wait if there is no notice yet. */
        wait?: number;
      };
    };
    answer: {
      /** Oldest first. */
      notices: Array<FeedNotice>;
      /** Give it back as `after`. */
      cursor: string;
      /** Whether more notices already follow. */
      more: boolean;
    };
  };
};

export type AttentionKind =
  | 'amount_mismatch'
  | 'api_key_refused'
  | 'deliveries_refused'
  | 'duplicate_payment'
  | 'event_conflict'
  | 'event_dead'
  | 'event_not_understood'
  | 'link_disabled'
  | 'link_mismatch'
  | 'link_missing'
  | 'link_not_known'
  | 'link_not_opened'
  | 'link_withheld'
  | 'merchant_inactive'
  | 'money_unnamed'
  | 'money_untold'
  | 'notices_dead'
  | 'quote_reading_doubtful'
  | 'reference_taken'
  | 'refund_due'
  | 'secret_unusable'
  | 'service_disagrees'
  | 'service_unanswered'
  | 'shop_refuses_notices'
  | 'status_unclear'
  | 'webhook_address_changed';

/** Only if it was asked for. */
export type Count = {
  n: number;
  /** Whether there are more. */
  isMore: boolean;
};

/** A notice with its place in the feed. */
export type FeedNotice = Notice & {
  /** The place right after this one. */
  cursor: string;
  /** The same over all attempts, and in the feed: do once what it asks for. */
  id: string;
};

export type Flag = 'late' | 'money_unnamed' | 'overpaid' | 'underpaid' | 'duplicate_payment' | 'refund_due';

export type HoldReason =
  | 'amount_mismatch'
  | 'currency_mismatch'
  | 'reference_mismatch'
  | 'status_unclear'
  | 'paid_after_cancel'
  | 'payment_after_refund'
  | 'further_payment'
  | 'unconfirmed';

/** The payment link of an order. */
export type Link = {
  /** The service's id; null while it is not known. */
  id: string | null;
  /** Where the customer pays; null while it is not known. */
  url: string | null;
  shortUrl: string | null;
  /** `ACTIVE`, `INACTIVE` or `EXPIRED`; null while it is not known. */
  status: string | null;
  /** When it expires; null while that is not known. */
  expiresAt: string | null;
};

/** An order, its open matters and holds. */
export type ListedOrder = Order & {
  /** Of its open matters. */
  attention: Array<AttentionKind>;
};

/** What happened to an order, as settled tells the shop. */
export type Notice = {
  type: NoticeType;
  /** When it happened. */
  timestamp: string;
  data: {
    /** The order right after that. */
    order: Order;
    /** The version of the order when this happened. */
    version: number;
  };
};

export type NoticeType =
  | 'order.paid'
  | 'order.payment_pending'
  | 'order.held'
  | 'order.expired'
  | 'order.cancelled'
  | 'order.refunded'
  | 'order.disputed'
  | 'payment.duplicate';

/** The claim of the shop to money. */
export type Order = {
  /** The order's name, and the `externalReference` of its link. */
  reference: string;
  state: OrderState;
  /** What to know besides the state. */
  flags: Array<Flag>;
  /** What the order asks for. */
  amount: string;
  /** ISO 4217, or one that `SETTLED_CURRENCY` names. */
  currency: string;
  /** As the shop gave it; null if the shop makes its link itself. */
  title: string | null;
  /** The same; null if it gave none. */
  metadata: Record<string, unknown> | null;
  /** Who buys, as the shop said; null after `SETTLED_KEEP_BODIES`. */
  customer: {
    /** Null if it was not said. */
    name: string | null;
    /** Null if it was not said. */
    email: string | null;
  } | null;
  createdAt: string;
  /** When settled learned that the order is paid. */
  paidAt: string | null;
  /** How settled learned that it was paid. */
  learnedBy: 'webhook' | 'reconciliation' | 'person' | null;
  /** The payment that paid the order, or else the first that settled counted. */
  payment: Payment | null;
  /** As counted; of more, `payment` and the newest. */
  payments: Array<Payment>;
  /** All payments that were counted, exactly. */
  paymentsTotal: {
    /** The number of counted payments, listed or not. */
    count: number;
    /** Their readable sums in each currency; the currency of the order is the first. */
    sums: Array<{
      /** As the service named it. */
      currency: string;
      /** What the service has collected, before refunds and disputes. */
      captured: string;
      /** What is left of it after refunds and disputes. */
      balance: string;
    }>;
  };
  /** What a person must decide, the oldest first. */
  holds: Array<{ id: string; reason: HoldReason }>;
  /** The oldest open hold. */
  hold: { reason: HoldReason } | null;
  /** Null if it is not shown. */
  link: Link | null;
  /** Grows with every change of the order that a shop can see. */
  version: number;
};

export type OrderState =
  | 'awaiting_payment'
  | 'payment_pending'
  | 'paid'
  | 'held'
  | 'expired'
  | 'cancelled'
  | 'refunded'
  | 'disputed';

/** A payment that was counted for an order. */
export type Payment = {
  /** The service's id; null while it has not named one. */
  id: string | null;
  status: 'completed' | 'refunded' | 'disputed';
  /** What counts of it for the order: the link's money. */
  amount: string | null;
  /** As the service named it. */
  currency: string;
  /** What the customer paid if that differs: with interest, or in another currency. */
  customerPaid: {
    /** As the service said it, in this currency. */
    amount: string;
    /** As the service named it. */
    currency: string;
  } | null;
  /** What the service named last, if that is not `amount`. */
  stated: {
    /** A decimal number, or what the service wrote in its place. */
    amount: string;
    /** As the service named it. */
    currency: string;
  } | null;
  /** As the service calls it. */
  method: string | null;
  /** In how many instalments the customer pays. */
  installments: number | null;
  /** The total with interest in BRL. */
  totalBRL: string | null;
  /** Who paid, as the service says; null after `SETTLED_KEEP_BODIES`. */
  customer: {
    /** Null if it was not said. */
    name: string | null;
    /** Null if it was not said. */
    email: string | null;
  } | null;
  /** When the customer began to pay. */
  createdAt: string | null;
  /** When the service completed it. */
  completedAt: string | null;
  /** When the merchant can use the money. */
  availableAt: string | null;
};

export type RowStatus = 'pending' | 'leased' | 'done' | 'dead';

/** One thing that happened to an order. */
export type TimelineEntry = {
  at: string;
  kind: 'registration' | 'delivery' | 'reading' | 'stale' | 'rejected' | 'decision' | 'drift' | 'notice' | 'attention';
  summary: string;
  details: Array<string>;
  /** The row that it shows or that decided it; null if there is no such row. */
  about: { what: 'event' | 'notice' | 'matter'; id: string; status: RowStatus | null } | null;
};

/** What may go wrong with them: docs/errors.md. */
export type ProblemCode =
  | 'api_key_refused'
  | 'api_not_configured'
  | 'body_too_large'
  | 'content_type'
  | 'correction_forbidden'
  | 'cursor_from_before_restore'
  | 'forbidden'
  | 'internal'
  | 'invalid_request'
  | 'link_expired'
  | 'link_id_conflict'
  | 'link_id_taken'
  | 'link_unknown'
  | 'link_withheld'
  | 'not_cancellable'
  | 'not_found'
  | 'order_cancelled'
  | 'public_url_not_public'
  | 'reference_conflict'
  | 'reference_taken'
  | 'refused_by_service'
  | 'service_unavailable'
  | 'unauthorized'
  | 'unavailable';
