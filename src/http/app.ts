import express, { type ErrorRequestHandler, type Express, type RequestHandler, type Router } from 'express';
import { Fault } from '../fault.ts';
import type { Log } from '../observe/log.ts';
import { NOTHING_HERE } from '../vocabulary.ts';
import { type ProblemCode, sendProblem } from './problem.ts';

/** Makes an Express application that reveals little about itself, with its own answers for unknown pages and faults. */
export function createApp(options: { routers: readonly RequestHandler[]; log: Log; newId: () => string }): Express {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.enable('strict routing');
  app.use(identify(options.newId));
  for (const router of options.routers) app.use(router);
  app.use((_request, response) => {
    sendProblem(response, { status: 404, code: 'not_found', detail: NOTHING_HERE });
  });
  app.use(answerFault(options.log));
  return app;
}

/** Gives an answer the id that ties it to the log: the caller's own if it is plain; otherwise a new one. */
function identify(newId: () => string): RequestHandler {
  return ({ headers }, response, next) => {
    const given = headers['x-request-id'];
    const isPlain = typeof given === 'string' && /^[\w.-]{1,64}$/.test(given);
    response.setHeader('x-request-id', isPlain ? given : newId());
    next();
  };
}

/** Answers a failed request: with the fault's message if it is meant for callers, never with a stack. */
function answerFault(log: Log): ErrorRequestHandler {
  return (error, request, response, _next) => {
    const { type, status } = error as { type?: string; status?: number };
    const answer = (status: number, code: ProblemCode, detail: string) =>
      sendProblem(response, { status, code, detail });
    if (type === 'entity.too.large') answer(413, 'body_too_large', 'The body has at most 65536 bytes.');
    else if (status === 415) {
      answer(415, 'content_type', 'Send the body as JSON in UTF-8, without a content encoding.');
    } else if (error instanceof URIError) {
      answer(400, 'invalid_request', 'The address cannot be read: percent-encode every part of it as UTF-8.');
    } else if (status !== undefined && status >= 400 && status < 500) {
      answer(400, 'invalid_request', 'The body cannot be read as JSON.');
    } else if (error instanceof Fault && error.kind === 'transient') answer(503, 'unavailable', error.message);
    else {
      const id = response.getHeader('x-request-id');
      log.error({ request: id, method: request.method, fault: error }, 'a request failed');
      answer(500, 'internal', `Something is wrong here; the log has request ${id}.`);
    }
  };
}

/**
 * Whether the process should get requests, and if not, the first reason. `troubles`: what a person should know, in
 * sentences. Deliveries can be taken meanwhile, and must be.
 */
export type Readiness = () => { ready: true; troubles?: readonly string[] } | { ready: false; reason: string };

/**
 * Health routes of the public listener. `GET /livez`: the process answers. `GET /readyz`: its store can be written and
 * it is not stopping. Only the private listener gives the reason, which may name the store.
 */
export function healthRoutes(readiness: Readiness): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/livez', showLive);
  router.get(
    '/readyz',
    showReadiness(() => ({ ready: readiness().ready })),
  );
  return router;
}

export const showLive: RequestHandler = (_request, response) => {
  response.json({ live: true });
};

export function showReadiness(readiness: () => { ready: boolean }): RequestHandler {
  return (_request, response) => {
    const state = readiness();
    response.status(state.ready ? 200 : 503).json(state);
  };
}

/** HTML that may be inserted unescaped. Only `html` makes it. */
export type Html = { readonly markup: string };

export type HtmlValue = Html | string | number | null | readonly HtmlValue[];

/** A template of HTML. Escapes every value that is not `Html`; null becomes nothing, and lists are joined. */
export function html(parts: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return { markup: String.raw({ raw: parts }, ...values.map(markupOf)) };
}

function markupOf(value: HtmlValue): string {
  if (value === null) return '';
  if (typeof value !== 'object') return escapeText(String(value));
  return 'markup' in value ? value.markup : value.map(markupOf).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for use between tags and in quoted attribute values. */
function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
