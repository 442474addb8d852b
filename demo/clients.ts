const ANSWER_MS_MAX = 20_000;

// biome-ignore lint/suspicious/noExplicitAny: what a service answers is checked where it is used
export type Answer = { status: number; headers: Headers; body: any };

type CallOptions = {
  token?: string;
  /** Sent as JSON. Without a body or a form the request is a GET. */
  body?: unknown;
  /** Sent like a browser's form. */
  form?: Readonly<Record<string, string>>;
};

/** A program did not answer, or not as expected. */
export class CallFailed extends Error {}

/** The fields of settled's orders that the demo reads. */
export type Order = {
  reference: string;
  state: string;
  amount: string;
  currency: string;
  paidAt: string | null;
  learnedBy: string | null;
  payments: { id: string | null; status: string }[];
  link: { id: string | null; url: string | null; status: string | null } | null;
  version: number;
};

type NewOrder = { reference: string; title: string; amount: string; callbackUrl?: string };

/** settled's private API with one token, as a shop calls it. */
export type Settled = {
  /** The order's link is null if settled does not know it yet (202). */
  openOrder(order: NewOrder): Promise<Order>;
  /** Null if there is none. */
  findOrder(reference: string): Promise<Order | null>;
  listOrders(): Promise<Order[]>;
  /** Asks the service now. */
  checkOrder(reference: string): Promise<Order>;
  listRejections(reference: string): Promise<{ reason: string; count: number }[]>;
  /** The address of a link that signs a browser in to the console, once. */
  consoleLink(): Promise<string>;
};

/** settled refused. Its message says what to do. */
export class SettledRefusal extends CallFailed {
  readonly status: number;
  readonly code: string;
  constructor({ status, body }: Answer) {
    super(typeof body?.detail === 'string' ? body.detail : `settled answered ${status}.`);
    this.status = status;
    this.code = typeof body?.title === 'string' ? body.title : '';
  }
}

export function connectSettled(url: string, token: string): Settled {
  const ask = async (path: string, body?: unknown) => {
    const answer = await call(`${url}${path}`, { token, body });
    if (answer.status >= 200 && answer.status < 300) return answer.body;
    throw new SettledRefusal(answer);
  };
  const pathOf = (reference: string) => `/v1/orders/${encodeURIComponent(reference)}`;
  return {
    openOrder: async (order) => (await ask('/v1/orders', order)).order,
    findOrder: async (reference) => {
      try {
        return (await ask(pathOf(reference))).order;
      } catch (error) {
        if (error instanceof SettledRefusal && [400, 404].includes(error.status)) return null;
        throw error;
      }
    },
    listOrders: async () => (await ask('/v1/orders?limit=20')).orders,
    checkOrder: async (reference) => (await ask(`${pathOf(reference)}/check`, {})).order,
    consoleLink: async () => (await ask('/v1/sign-in-links', {})).link.url,
    listRejections: async (reference) =>
      (await ask(`/v1/rejections?reference=${encodeURIComponent(reference)}`)).rejections,
  };
}

/** One request of the sandbox to settled, as the sandbox recorded it. */
export type Attempt = { status: number | null; body: string | null; faults: string[] };

export type Delivery = { id: string; kind: string; paymentStatus: string | null };

type Plan = { fault: string; match: Record<string, unknown>; with?: object; count?: number | null };

/** The sandbox's controls: acts as the customer and as the service, and plans faults. `link` is a link's id. */
export type Sandbox = {
  /** With `complete` false the payment stays pending. */
  pay(link: string, complete?: boolean): Promise<void>;
  complete(link: string): Promise<void>;
  resend(delivery: string): Promise<void>;
  plan(plan: Plan): Promise<void>;
  deliveries(link: string): Promise<Delivery[]>;
  /** Every request about the link, in order of time. */
  attempts(link: string): Promise<Attempt[]>;
  /** Resolves when no delivery that is due is waiting or in flight. */
  idle(): Promise<void>;
};

export function connectSandbox(url: string): Sandbox {
  const ask = async (path: string, body?: unknown) => {
    const answer = await call(`${url}/_control${path}`, { body });
    if (answer.status < 300) return answer.body;
    throw new CallFailed(`the sandbox answered ${answer.status} to ${path}: ${answer.body?.error?.message}`);
  };
  const query = (link: string) => `?link=${encodeURIComponent(link)}`;
  return {
    pay: (link, complete = true) => ask(`/links/${link}/pay`, { complete }),
    complete: (link) => ask(`/links/${link}/complete`, {}),
    resend: (delivery) => ask(`/deliveries/${delivery}/resend`, {}),
    plan: (plan) => ask('/faults', plan),
    deliveries: async (link) => (await ask(`/deliveries${query(link)}`)).deliveries,
    attempts: async (link) =>
      // biome-ignore lint/suspicious/noExplicitAny: the sandbox's own answer
      (await ask(`/attempts${query(link)}`)).attempts.map((attempt: any) => ({
        status: attempt.responseStatus,
        body: attempt.responseBody,
        faults: attempt.faults,
      })),
    idle: () => ask('/idle', {}),
  };
}

/** Makes one request, and reads a JSON answer. Does not throw for any status, and does not follow redirects. */
export async function call(url: string, { token, body, form }: CallOptions = {}): Promise<Answer> {
  const sent = form === undefined ? jsonBody(body) : { method: 'POST', body: new URLSearchParams(form) };
  try {
    const response = await fetch(url, {
      ...sent,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const text = await response.text();
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  } catch (error) {
    const { cause, message } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    throw new CallFailed(`${new URL(url).origin} does not answer: ${why}`);
  }
}

function jsonBody(body: unknown): RequestInit {
  return body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
}
