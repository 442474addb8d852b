import type { RequestHandler } from 'express';
import type { z } from 'zod';
import type { ProblemCode } from '../http/problem.ts';
import type { Role } from './auth.ts';
import type { ApiOptions } from './options.ts';

/** One route of the private listener, with what its document says: none exists without it. */
export type Route = {
  method: 'get' | 'post';
  path: string;
  /** Whose tokens it takes. */
  allowed: readonly Role[];
  handle: (options: ApiOptions) => RequestHandler;
  operation: Operation;
};

/** A route that takes no token, as it tells nothing that is secret. */
export type OpenRoute = Omit<Route, 'method' | 'allowed'>;

/** The groups of the document, in their order. */
export const GROUPS = {
  Orders: 'What a shop needs: an order gets its payment link, and is read, checked and cancelled.',
  Feed: 'Everything that happens to orders, in order, for a shop that reads instead of being called.',
  Notices: 'What the shop was told by callback, and what it was not.',
  Events: 'What the service said, and what became of it.',
  Operation: 'How the installation does, and what a person does for it.',
  Health: 'For machines that watch, and for readers of this document. They need no token, but for the metrics.',
} as const;

/** What the document says of a route, beside what is true of every route of its kind: see openapi/rules.ts. */
export type Operation = {
  /** `operationId`: unique, and the name of a function in a generated client. */
  id: string;
  group: keyof typeof GROUPS;
  summary: string;
  /** Paragraphs, with names in backticks. */
  description?: string;
  /** Of `:id` in the path; a reference is the same everywhere. */
  pathId?: z.ZodString;
  /** A route without takes no parameters; one that is under `/v1/` refuses them by name. */
  query?: z.ZodObject;
  /** A route without takes no fields, and refuses them by name. */
  body?: z.ZodObject;
  /** By status. */
  answers: Readonly<Record<number, Answer>>;
  problems?: readonly Stated[];
  /** What a route answers by itself where the store fails. */
  answersWithoutStore?: true;
  /** What the example sends: a query string, or a body. */
  example?: { query?: string; body?: Readonly<Record<string, unknown>> };
};

/** A problem by the status that it is answered with. */
export type Stated = readonly [status: number, code: ProblemCode];

type Answer = {
  when: string;
  schema: z.ZodType;
  /** JSON unless told otherwise. */
  type?: string;
  /** Whether it says when to come again. */
  retryAfter?: true;
};
