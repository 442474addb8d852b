import { type Answer, CallFailed, call } from './call.ts';

/** An order as settled shows it; only what the demo looks at. */
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
  /** 201 or 200 with the order; 202 where its link is not known yet. */
  openOrder(order: NewOrder): Promise<Order>;
  /** Null where there is none. */
  findOrder(reference: string): Promise<Order | null>;
  listOrders(): Promise<Order[]>;
  /** Asks the service now. */
  checkOrder(reference: string): Promise<Order>;
  listRejections(reference: string): Promise<{ reason: string; count: number }[]>;
};

/** settled refused; the message is its own, and says what to do. */
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
    listRejections: async (reference) =>
      (await ask(`/v1/rejections?reference=${encodeURIComponent(reference)}`)).rejections,
  };
}
