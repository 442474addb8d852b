import type { RequestHandler, Response } from 'express';
import type { z } from 'zod';
import type { ClockSteps } from '../app/clock_steps.ts';
import type { Readiness } from '../http/app.ts';
import type { ProblemCode } from '../http/problem.ts';
import type { LinkOpener } from '../links/opener.ts';
import type { Activity } from '../observe/activity.ts';
import type { Log } from '../observe/log.ts';
import type { Metrics } from '../observe/metrics.ts';
import type { HeaderNames } from '../paylink/events.ts';
import type { Service } from '../paylink/service.ts';
import type { Reconciler } from '../reconcile/reconciler.ts';
import type { Credentials } from '../secrets/credentials.ts';
import type { Keyring } from '../secrets/keyring.ts';
import type { Rotation } from '../secrets/rotation.ts';
import type { StoreAddress } from '../store/address.ts';
import type { Store } from '../store/contract.ts';
import type { Clock } from '../work/clock.ts';
import type { Signal } from '../work/signal.ts';
import type { Role, Tokens } from './auth.ts';
import { nothing, orderPath, read } from './requests.ts';

/** One route of the private listener. */
export type Route = {
  method: 'get' | 'post';
  path: string;
  /** Whose tokens it takes; empty if it takes requests without a token, as it tells no secret. */
  allowed: readonly Role[];
  operation: Operation;
};

/** The groups of the document, in their order. */
export const GROUPS = {
  Orders: 'What a shop needs: open a payment link for an order, then read, check or cancel the order.',
  Feed: 'Everything that happens to orders, in order, for a shop that reads instead of receiving callbacks.',
  Notices: 'What the shop was told by callback, and what it was not.',
  Events: 'What the service said, and what became of it.',
  Operation: 'The state of the installation, and what a person does for it.',
  Health: 'For monitoring, and for readers of this document. Only the metrics need a token.',
} as const;

/** What the document says of a route beyond the rules of `problemsOf`, and how settled answers it. */
export type Operation = {
  /** `operationId`: unique, and the name of a function in a generated client. */
  id: string;
  group: keyof typeof GROUPS;
  summary: string;
  /** Paragraphs, with names in backticks. */
  description?: string;
  /** The schema of `:id` in the path; a reference has the same schema everywhere. */
  pathId?: z.ZodString;
  /** Without it, the route refuses every query parameter by name. */
  query?: z.ZodObject;
  /** Without it, the route refuses every field of a body by name. */
  body?: z.ZodObject;
  /** By status. */
  answers: Readonly<Record<number, Answer>>;
  problems?: readonly Stated[];
  /** Set if the route answers even when the store fails. */
  answersWithoutStore?: true;
  /** What the example sends: a query string, or a body. */
  example?: { query?: string; body?: Readonly<Record<string, unknown>> };
  handle: (options: ApiOptions) => RequestHandler;
};

/** A problem by the status that it is answered with. */
export type Stated = readonly [status: number, code: ProblemCode];

type Answer = {
  when: string;
  schema: z.ZodType;
  /** What the document and its page show: an object for JSON, else a text. A test holds it against the schema. */
  sample: object | string;
  /** JSON by default. */
  type?: string;
  /** Whether the answer has `Retry-After`. */
  retryAfter?: true;
};

/** What a handler gets: the names in the path, and query and body as the operation's schemas read them. */
type Asked<Query, Body> = { reference: string; id: string; query: Query; body: Body; role: Role };

type Documented<Query, Body> = Omit<Operation, 'handle' | 'query' | 'body'> & {
  query?: Query;
  body?: Body;
  /** Returns the document to send as JSON; or nothing, if it has ended the response itself. */
  answer: (
    options: ApiOptions,
    asked: Asked<z.output<Query>, z.output<Body>>,
    response: Response,
  ) => object | undefined | Promise<object | undefined>;
};

/** Makes an operation whose handler reads the request by the operation's schemas before it answers. */
export function operation<Query extends z.ZodObject = typeof nothing, Body extends z.ZodObject = typeof nothing>({
  answer,
  ...documented
}: Documented<Query, Body>): Operation {
  const { query = nothing, body = nothing } = documented;
  const handle: Operation['handle'] = (options) => async (request, response) => {
    const { reference, id } = request.params;
    const asked = {
      query: read(query, request.query) as z.output<Query>,
      reference: reference === undefined ? '' : read(orderPath, request.params).reference,
      id: String(id),
      body: read(body, request.body) as z.output<Body>,
      role: response.locals.role as Role,
    };
    const document = await answer(options, asked, response);
    if (document !== undefined) response.json(document);
  };
  return { ...documented, handle };
}

/** Everything that handlers need. */
export type ApiOptions = {
  store: Store;
  keyring: Keyring;
  credentials: Pick<Credentials, 'find' | 'keep' | 'forget' | 'noteLinkId'>;
  tokens: Tokens;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  activity: Activity;
  readiness: Readiness;
  publicUrl: string;
  /** Of deliveries. */
  headerNames: HeaderNames;
  /** How far the signed timestamp of a delivery may be from our clock. */
  toleranceSeconds: number;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
  /** What speaks to the service's API; null if none is configured. */
  asking: { service: Service; opener: LinkOpener; reconciler: Reconciler } | null;
  /** All slots of the API budget. */
  apiSlots: number;
  /** Currency codes with a space between two: an order that names none is in the first. */
  currency: string;
  storeAddress: StoreAddress;
  /** The store, by a name that is the same in every folder. */
  storeName: string;
  /** The name of this process among those that work on the store; null if it is alone. */
  replica: string | null;
  /** Where the secrets key is kept, in words for a person. */
  secretsKeyPlace: string;
  rotation: Pick<Rotation, 'rotate'>;
  clockSteps: Pick<ClockSteps, 'latest' | 'isTrusted'>;
  /** Called when an event was made pending again. */
  onRequeued: () => void;
  /** Whether the shop has a callback; without one it reads the feed. */
  canTell: boolean;
  /** The callback as a person may see it, without what may be secret; null if there is none. */
  shopAddress: string | null;
  /** Rings when there may be a new notice. */
  notices: Signal;
  /** Called when a notice has become due, or was made. */
  onNotices: () => void;
};
