import { CallFailed, call } from './call.ts';

/** What the sandbox noted of one request to settled. */
export type Attempt = { status: number | null; body: string | null; faults: string[] };

export type Delivery = { id: string; kind: string; paymentStatus: string | null };

type Plan = { fault: string; match: Record<string, unknown>; with?: object; count?: number | null };

/** The sandbox's controls: what a customer does, what the service does, and what goes wrong. `link` is a link's id. */
export type Sandbox = {
  /** With `complete` false the payment stays pending. */
  pay(link: string, complete?: boolean): Promise<void>;
  complete(link: string): Promise<void>;
  resend(delivery: string): Promise<void>;
  plan(plan: Plan): Promise<void>;
  deliveries(link: string): Promise<Delivery[]>;
  /** Every request about the link, in order of time. */
  attempts(link: string): Promise<Attempt[]>;
  /** Resolves when nothing that is due is on its way. */
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
