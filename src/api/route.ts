import type { Request, RequestHandler, Response } from 'express';
import { z } from 'zod';
import type { Caller, Callers } from '../access/identify.ts';
import type { Alerts } from '../alert/alerts.ts';
import type { HeartbeatState } from '../alert/heartbeat.ts';
import type { ClockSteps } from '../app/clock_steps.ts';
import type { Access, Change } from '../domain/access.ts';
import type { Readiness } from '../http/app.ts';
import type { Problem, ProblemCode } from '../http/problem.ts';
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
import type { Author } from '../store/verbs/audit.ts';
import type { Clock } from '../work/clock.ts';
import type { BackgroundWorker } from '../work/loop.ts';
import type { Signal } from '../work/signal.ts';
import { formBody, isForm } from './body.ts';
import { givenReference, IS_NEEDED } from './fields.ts';
import { problem } from './problem.ts';
import type { CountedNowAndThen, SharedLoads } from './shared_loads.ts';

/** One route of the private listener. */
export type Route = {
  method: 'get' | 'post';
  path: string;
  /** Who may use it; null if anyone may, because it tells no secret. */
  allowed: Access | null;
  group: keyof typeof GROUPS;
  /** Unique. */
  id: string;
  operation: Operation;
};

/** The groups of the document, in their order. */
export const GROUPS = {
  Orders: 'What a shop needs: open a payment link for an order, then read, check or cancel the order.',
  Feed: 'Everything that happens to orders, in order, for a shop that reads instead of receiving callbacks.',
  Notices: 'What the shop was told by callback, and what it was not.',
  Events: 'What the service said, and what became of it.',
  Operation: 'The state of the installation, and what a person does for it.',
  Access: 'Who may use settled, who is signed in, and what people did.',
  Health: 'For monitoring, and for readers of this document. Only the metrics need a token.',
} as const;

/** What the document says of a route beyond the rules of `problemsOf`, and how settled answers it. */
export type Operation = {
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
  problems?: Problems;
  /** Set if the route answers even when the store fails. */
  answersWithoutStore?: true;
  /** A body that it takes. */
  example?: Readonly<Record<string, unknown>>;
  handle: (options: ApiOptions) => RequestHandler;
};

/** Codes of problems by the status that they are answered with. */
export type Problems = Readonly<Record<number, readonly ProblemCode[]>>;

type Answer = {
  when: string;
  schema: z.ZodType;
  /** JSON by default. */
  type?: string;
  /** Whether the answer has `Retry-After`. */
  retryAfter?: true;
};

/** The answers of a route that has one, with 200. */
export function ok<F extends z.ZodRawShape>(when: string, fields: F) {
  return { 200: answer(when, fields) };
}

/** An answer in JSON that has these fields. */
export function answer<F extends z.ZodRawShape>(when: string, fields: F) {
  return { when, schema: z.strictObject(fields) } satisfies Answer;
}

/** What a handler gets: the names in the path, and query and body as the operation's schemas read them. */
type Asked<Query, Body> = {
  reference: string;
  id: string;
  query: Query;
  body: Body;
  caller: Caller;
  by: Author | null;
};

type Answers = Operation['answers'];

type Documented<Query, Body, Given extends Answers> = Omit<Operation, 'handle' | 'query' | 'body' | 'answers'> & {
  query?: Query;
  body?: Body;
  answers: Given;
  /** Returns the document to send as JSON; or nothing, if it has ended the response itself. */
  answer: (
    options: ApiOptions,
    asked: Asked<z.output<Query>, z.output<Body>>,
    response: Response,
  ) => object | undefined | Promise<object | undefined>;
};

const nothing = z.strictObject({});
export const orderPath = z.object({ reference: givenReference });

/** What a page asks an operation for: names in the path and a query, as in the page's own address; a body asks for a dry run. */
type PageAsks = { reference?: string; id?: string; query?: object; body?: { dryRun: true } & object };

/** An operation that pages show what it answers. */
type Loadable<Given extends Answers> = Operation & {
  /** Reads the query by the operation's schema, and returns the document that the route answers with 200. */
  load(options: ApiOptions, asked?: PageAsks): Promise<z.output<Given[200]['schema']>>;
};

/** Makes an operation whose handler reads the request by the operation's schemas before it answers. */
export function operation<
  const Given extends Answers,
  Query extends z.ZodObject = typeof nothing,
  Body extends z.ZodObject = typeof nothing,
>({ answer, ...documented }: Documented<Query, Body, Given>): Loadable<Given> {
  const { query = nothing, body = nothing } = documented;
  const askedOf = (from: {
    params: Pick<PageAsks, 'reference' | 'id'>;
    query: unknown;
    body: unknown;
    caller: Caller;
  }) => ({
    query: read(query, from.query) as z.output<Query>,
    reference: from.params.reference === undefined ? '' : read(orderPath, from.params).reference,
    id: from.params.id ?? '',
    body: read(body, from.body) as z.output<Body>,
    caller: from.caller,
    by: (from.caller as Caller | undefined)?.author ?? null,
  });
  const handle: Operation['handle'] = (options) => async (request, response) => {
    const sent: unknown = isForm(request) ? formBody(request, body) : request.body;
    const { caller } = response.locals as { caller: Caller };
    const asked = askedOf({ params: request.params, query: request.query, body: sent, caller });
    let document: object | undefined;
    try {
      document = await answer(options, asked, response);
    } finally {
      // A change that is refused later on, by the service for example, has its row in the audit chain already.
      if (request.method === 'POST') options.pageLoads.forget();
      if (asked.by !== null && request.method === 'POST') await options.onAudited();
    }
    if (isForm(request)) await options.views.answered(request, response, document);
    else if (document !== undefined) response.json(document);
  };
  const number = ++operations;
  const load: Loadable<Given>['load'] = async (options, { query: asks = {}, body: dry = {}, ...params } = {}) => {
    const asked = askedOf({ params, query: asks, body: dry, caller: NOBODY });
    const name = `${number} ${JSON.stringify({ ...asked, caller: null })}`;
    const made = await options.pageLoads.load(name, async () => answer(options, asked, NO_RESPONSE));
    return made as z.output<Given[200]['schema']>;
  };
  return { ...documented, handle, load };
}

/** How many there are: each has its number in the name of what pages load. */
let operations = 0;

/** A page's own route has looked who asks. What an operation only shows does not depend on it. */
const NOBODY = Object.freeze({}) as Caller;
const NO_RESPONSE = Object.freeze({}) as Response;

/** Keeps in the audit chain what a person asks for, before it is carried out. */
export async function recordAction({ store, clock }: ApiOptions, by: Author | null, change: Change): Promise<void> {
  if (by !== null) await store.recordAction({ by, change, atMs: clock.nowMs() });
}

/**
 * Reads a part of a request by its schema. Throws a 400 that names every fault; a 422 about what is `within` a field that
 * has the right form.
 */
export function read<T>(schema: z.ZodType<T>, value: unknown, within?: string): T {
  const parsed = schema.safeParse(value ?? {}, { error: plainWords });
  if (parsed.success) return parsed.data;
  const faults = parsed.error.issues.flatMap(faultsOf);
  const errors = faults.map(({ path, detail }) => ({
    path: within === undefined ? path : `${within}.${path}`,
    detail,
  }));
  const detail = errors.map((error) => (error.path ? `${error.path}: ${error.detail}` : error.detail)).join('; ');
  throw problem(within === undefined ? 400 : 422, 'invalid_request', detail, { errors });
}

const MUST_BE: Readonly<Record<string, string>> = {
  string: 'must be text',
  number: 'must be a number',
  boolean: 'must be true or false',
  object: 'must be a JSON object',
};

/** The words for faults that the schemas themselves have no words for. */
function plainWords(issue: z.core.$ZodRawIssue): string {
  if (issue.input === undefined) return IS_NEEDED;
  if (issue.code === 'invalid_type') return MUST_BE[issue.expected] ?? 'is of another type than it must be';
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`;
  return 'cannot be used';
}

/** A fault by its place; of unknown fields one for each. */
function faultsOf(issue: z.core.$ZodIssue): { path: string; detail: string }[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...issue.path, key].join('.'), detail: 'there is no such field' }));
  }
  return [{ path: issue.path.join('.'), detail: issue.message }];
}

/** How the console answers a form: by going back to its page, or by a page of its own. */
export type FormViews = {
  answered(request: Request, response: Response, document: object | undefined): void | Promise<void>;
  refused(request: Request, response: Response, refused: Problem): void | Promise<void>;
};

/** Everything that handlers need. */
export type ApiOptions = CountedNowAndThen & {
  store: Store;
  keyring: Keyring;
  credentials: Pick<Credentials, 'find' | 'keep' | 'forget' | 'noteLinkId'>;
  access: Callers;
  /** Of the audit chain. */
  auditKey: Uint8Array;
  /** What pages of the console load. */
  pageLoads: SharedLoads;
  views: FormViews;
  /** Called when the audit chain may have moved. Never rejects. */
  onAudited(): Promise<void>;
  clock: Clock;
  log: Log;
  metrics: Metrics;
  activity: Activity;
  readiness: Readiness;
  /** What is wrong now and is no matter in the store. */
  unlisted: () => readonly string[];
  publicUrl: string;
  /** Of deliveries. */
  headerNames: HeaderNames;
  /** How far the signed timestamp of a delivery may be from our clock. */
  toleranceSeconds: number;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
  /** Where the service's API is, and what speaks to it; both null if none is configured. */
  apiUrl: string | null;
  asking: { service: Service; opener: LinkOpener; reconciler: Reconciler } | null;
  /** How long bytes of deliveries are kept. */
  keepBodiesMs: number;
  /** All slots of the API budget. */
  apiSlots: number;
  /** Currency codes with a space between two: an order that names none is in the first. */
  currency: string;
  storeAddress: StoreAddress;
  /** Why the storage of a server with fsync off is durable, as the operator declared; null if nothing is declared. */
  storeDurability: string | null;
  /** The store, by a name that is the same in every folder, and by an id that all of its copies share. */
  storeName: string;
  storeId: string;
  /** The name of this process among those that work on the store; null if it is alone. */
  replica: string | null;
  /** Where the secrets key is kept, in words for a person. */
  secretsKeyPlace: string;
  rotation: Pick<Rotation, 'rotate' | 'mayRotate'>;
  clockSteps: Pick<ClockSteps, 'latest' | 'isTrusted' | 'serviceAheadMs'>;
  alerts: Pick<Alerts, 'names' | 'test'>;
  /** Null if none is configured. */
  heartbeats: { state(): HeartbeatState } | null;
  /** Works on what people start for all rows of a filter. */
  bulk: Pick<BackgroundWorker, 'wake'>;
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
