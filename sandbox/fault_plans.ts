import { z } from 'zod';
import { EVENT_KINDS, Refusal, UnknownName } from './model.ts';
import type { SandboxStore } from './store/store.ts';
import { fields, oneOf, readShape, text, trueOrFalse, wholeNumber } from './validate.ts';

/** Faults of deliveries, with the parameters that each takes. */
const DELIVERY_FAULTS = {
  drop: {
    about: 'nothing is sent; the attempt counts as failed, or, with forGood, as if it had arrived',
    takes: { forGood: trueOrFalse().default(true) },
  },
  duplicate: { about: 'the same request is sent several times', takes: { times: wholeNumber(2, 100).default(2) } },
  reorder: {
    about: 'held back until this many later deliveries of the same link were sent; waits as long as it takes',
    takes: { by: wholeNumber(1, 100).default(1) },
  },
  delay: {
    about: "sent this many milliseconds later, by the sandbox's clock",
    takes: { ms: wholeNumber(1, 86_400_000).default(60_000) },
  },
  tamper: {
    about: 'the body is changed after it was signed: the amount, the status, or one byte',
    takes: { what: oneOf(['amount', 'status', 'byte']).default('amount') },
  },
  're-encode': { about: 'the body is written again after it was signed: the same JSON in other bytes', takes: {} },
  'stale-timestamp': {
    about: 'signed correctly, with a timestamp that is this old',
    takes: { ageMs: wholeNumber().default(3_600_000) },
  },
  'wrong-secret': { about: 'signed with another secret', takes: {} },
  truncate: { about: 'the end of the body is missing', takes: { bytes: wholeNumber(1, 1_000_000).default(10) } },
  oversize: {
    about: 'the body is padded with spaces to this many bytes, and signed as it is sent',
    takes: { bytes: wholeNumber(1, 10_000_000).default(300_000) },
  },
  'other-method': {
    about: 'sent with another method than POST',
    takes: { method: oneOf(['PUT', 'PATCH', 'GET', 'DELETE']).default('PUT') },
  },
  chunked: {
    about: 'sent without Content-Length, in chunks of this many bytes',
    takes: { bytes: wholeNumber(1, 1_000_000).default(64) },
  },
  compress: { about: 'sent as gzip, with a Content-Encoding header', takes: {} },
} as const;

/** Faults of requests to the API. */
const REQUEST_FAULTS = {
  'early-event': { about: 'the creation is answered only after its event was delivered', takes: {} },
  'lose-response': {
    about: 'the connection breaks before the request is carried out, or after it',
    takes: { when: oneOf(['before', 'after']).default('after') },
  },
  'rate-limit': {
    about: '429, as if the limit were reached',
    takes: { retryAfterSeconds: wholeNumber(1, 3_600).default(30) },
  },
  'server-error': { about: 'an error of the service', takes: { status: wholeNumber(500, 599).default(503) } },
  'html-page': {
    about: 'answered by something in front of the API, with a page of HTML; the API never gets the request',
    takes: { status: wholeNumber(200, 599).default(405) },
  },
  slow: { about: 'answered this many real milliseconds later', takes: { ms: wholeNumber(1, 600_000).default(5_000) } },
} as const;

export const FAULTS = { ...DELIVERY_FAULTS, ...REQUEST_FAULTS } as const;
type FaultName = keyof typeof FAULTS;
export type DeliveryFaultName = keyof typeof DELIVERY_FAULTS;

/**
 * Faults that postpone a delivery. An attempt may have several of them, one after the other; of any other fault, one.
 */
export const POSTPONING: ReadonlySet<string> = new Set(['delay', 'reorder']);

/** What a plan may match by. A field that it does not name matches everything. */
const DELIVERY_MATCH = { event: oneOf(EVENT_KINDS), link: text(300), attempt: wholeNumber(1, 1_000) };
const REQUEST_MATCH = { method: oneOf(['GET', 'POST']), path: text(300) };

/** Which fault, done to what, and how often. Nothing depends on probability. */
export type FaultPlan = {
  number: number;
  fault: FaultName;
  match: {
    event?: string | undefined;
    link?: string | undefined;
    attempt?: number | undefined;
    method?: string | undefined;
    path?: string | undefined;
  };
  /** How many matching ones pass unharmed first. */
  skip: number;
  /** How many more it harms; null for every one until the plan is removed. */
  remaining: number | null;
  applied: number;
  /** The fault's parameters: `ms`, `times`, `when` … */
  with: Record<string, unknown>;
};

export type FaultPlans = {
  /** Adds a plan of the shape `{fault, match?, skip?, count?, with?}`. Throws a refusal that names the wrong field. */
  add(plan: unknown): FaultPlan;
  list(): FaultPlan[];
  /** False if there is no such plan. */
  remove(number: number): boolean;
  clear(): void;
  /** The plans that harm this attempt, in the order in which they were added; counts each as applied. */
  forDelivery(attempt: { event: string; link: string; attempt: number }): FaultPlan[];
  /** The same for a request; `path` without the query. */
  forRequest(request: { method: string; path: string }): FaultPlan[];
};

export function openFaultPlans({ db }: SandboxStore): FaultPlans {
  const insert = db.prepare('INSERT INTO fault_plan (fault, plan, remaining) VALUES (?, ?, ?)');
  const rows = db.prepare('SELECT * FROM fault_plan ORDER BY number');
  const update = db.prepare('UPDATE fault_plan SET plan = ?, remaining = ?, applied = ? WHERE number = ?');
  const remove = db.prepare('DELETE FROM fault_plan WHERE number = ?');
  const clear = db.prepare('DELETE FROM fault_plan');
  const plans: FaultPlan[] = (rows.all() as Row[]).map(readRow);

  function save({ number, match, skip, with: params, remaining, applied }: FaultPlan): void {
    update.run(JSON.stringify({ match, skip, with: params }), remaining, applied, number);
  }

  function take(names: object, fits: (plan: FaultPlan) => boolean): FaultPlan[] {
    const taken: FaultPlan[] = [];
    for (const plan of plans) {
      if (taken.some(endsRequest)) break;
      if (!Object.hasOwn(names, plan.fault) || plan.remaining === 0 || !fits(plan)) continue;
      if (!POSTPONING.has(plan.fault) && taken.some(({ fault }) => fault === plan.fault)) continue;
      if (plan.skip > 0) plan.skip--;
      else {
        plan.applied++;
        if (plan.remaining !== null) plan.remaining--;
        taken.push({ ...plan });
      }
      save(plan);
    }
    return taken;
  }

  return {
    add: (given) => {
      const { fault, match, skip, count, with: params } = readPlan(given);
      const { lastInsertRowid } = insert.run(fault, JSON.stringify({ match, skip, with: params }), count);
      const number = Number(lastInsertRowid);
      const plan: FaultPlan = { number, fault, match, skip, remaining: count, applied: 0, with: params };
      plans.push(plan);
      return { ...plan };
    },
    list: () => plans.map((plan) => ({ ...plan })),
    remove: (number) => {
      const at = plans.findIndex((plan) => plan.number === number);
      if (at >= 0) plans.splice(at, 1);
      return remove.run(number).changes === 1;
    },
    clear: () => {
      plans.length = 0;
      clear.run();
    },
    forDelivery: ({ event, link, attempt }) =>
      take(DELIVERY_FAULTS, ({ match }) => {
        const isKind = match.event === undefined || match.event === event;
        const isLink = match.link === undefined || match.link === link;
        return isKind && isLink && (match.attempt === undefined || match.attempt === attempt);
      }),
    forRequest: ({ method, path }) =>
      take(REQUEST_FAULTS, ({ fault, match }) => {
        // Only a creation has an event; another request must not use the plan up.
        if (fault === 'early-event' && method !== 'POST') return false;
        const isMethod = match.method === undefined || match.method === method;
        return isMethod && (match.path === undefined || match.path === path);
      }),
  };
}

/** Whether the request ends with this fault. Later plans wait for the next request. */
function endsRequest({ fault, with: takes }: FaultPlan): boolean {
  if (fault === 'lose-response') return takes.when === 'before';
  return fault === 'rate-limit' || fault === 'server-error' || fault === 'html-page';
}

/** Throws a refusal that names the wrong field of a fault plan. */
export function readPlan(given: unknown) {
  const name = (given as { fault?: unknown } | null)?.fault;
  if (name === undefined) {
    const message = `fault is missing; known: ${Object.keys(FAULTS).join(', ')}`;
    throw new Refusal(400, 'validation_error', message, 'fault');
  }
  if (typeof name !== 'string' || !Object.hasOwn(FAULTS, name)) {
    const message = new UnknownName('fault', name, Object.keys(FAULTS)).message;
    throw new Refusal(400, 'validation_error', message, 'fault');
  }
  const fault = name as FaultName;
  const isOfDelivery = Object.hasOwn(DELIVERY_FAULTS, fault);
  const match = isOfDelivery ? DELIVERY_MATCH : REQUEST_MATCH;
  const target = isOfDelivery ? 'deliveries' : 'requests';
  const hint = `is not known: ${fault} is done to ${target}, match by ${Object.keys(match).join(', ')}`;
  const shape = fields({
    fault: z.literal(fault),
    match: fields(match, hint).partial().default({}),
    skip: wholeNumber(0, 1_000_000).default(0),
    count: wholeNumber(1, 1_000_000).nullable().default(1),
    with: fields(FAULTS[fault].takes).prefault({}),
  });
  return readShape(shape, given) as unknown as {
    fault: FaultName;
    match: FaultPlan['match'];
    skip: number;
    count: number | null;
    with: Record<string, unknown>;
  };
}

type Row = { number: number; fault: string; plan: string; remaining: number | null; applied: number };

function readRow({ number, fault, plan, remaining, applied }: Row): FaultPlan {
  return { number, fault: fault as FaultName, remaining, applied, ...JSON.parse(plan) };
}

type KnownFault = {
  about: string;
  target: 'delivery' | 'request';
  /** The parameters of `with`, each described in words. */
  takes: Record<string, string>;
};

/** Every fault with its parameters, for people. */
export const KNOWN_FAULTS: Readonly<Record<string, KnownFault>> = Object.fromEntries(
  Object.entries(FAULTS).map(([name, { about, takes }]) => {
    const target = Object.hasOwn(DELIVERY_FAULTS, name) ? 'delivery' : 'request';
    return [name, { about, target, takes: describeTakes(takes) }];
  }),
);

type Schema = { type?: string; enum?: string[]; minimum?: number; maximum?: number; default?: unknown };

function describeTakes(takes: z.core.$ZodShape): Record<string, string> {
  const { properties = {} } = z.toJSONSchema(z.object(takes)) as { properties?: Record<string, Schema> };
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, describe(schema)]));
}

function describe(schema: Schema): string {
  const { minimum = 0, maximum = 0 } = schema;
  const isBounded = Number.isSafeInteger(maximum - minimum) && maximum > minimum;
  const range = isBounded ? `a whole number from ${minimum} to ${maximum}` : 'a whole number';
  const kind = schema.enum?.join(', ') ?? (schema.type === 'boolean' ? 'true or false' : range);
  return `${kind}; default ${schema.default}`;
}
