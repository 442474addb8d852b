import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Request, type Response, type Router } from 'express';
import { LinkFault } from '../fault.ts';
import { readUnverifiedLinkIds } from '../paylink/events.ts';
import type { LinkCredentials } from '../store/credentials.ts';
import type { KeptReason } from '../store/rejections.ts';
import { ANSWERS, type Answer, send } from './answer.ts';
import { announcesTooMuch, type BodyReader } from './body.ts';
import { crossOriginHeaders, preflight } from './cross_origin.ts';
import { type DeliveryOptions, type Ended, takeDelivery } from './delivery.ts';
import type { LookUp } from './look_up.ts';
import { diagnoseUnread } from './refusal.ts';

export type ReceiveOptions = DeliveryOptions & {
  bodies: BodyReader;
  lookUp: LookUp;
  /** Called when a request names a link whose body is still on its way. */
  onNamed: (request: IncomingMessage) => void;
  /** The origin whose pages may deliver from a browser; null for none. */
  crossOrigin: string | null;
  /** Whether the process is stopping and takes no more deliveries. */
  isClosed: () => boolean;
  onOutcome: (ended: Ended, sinceHeadersMs: number) => void;
  /** Called after a delivery was refused unread, with the order whose link it named. */
  onUnread: (refused: { reason: KeptReason; order: string | undefined }) => void;
};

/** Tokens that settled makes: 24 random bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{32}$/;

/** Null: there is no such link. Throws where the store cannot say. */
type FindLink = (body: Buffer) => Promise<LinkCredentials | null>;

/**
 * The routes that take deliveries: `POST /hooks/<token>`, and `POST /hooks` for links whose address is fixed; and what
 * answers requests that wait for `100 Continue`.
 */
export function hooksOf(options: ReceiveOptions): {
  router: Router;
  refuseContinue: (request: IncomingMessage, response: ServerResponse) => boolean;
} {
  const unread = unreadRefusals(options);
  return {
    router: hookRoutes(options, unread),
    refuseContinue: (request, response) => {
      const isRefused = refuseContinue(request, response);
      if (isRefused) unread(HOOK.exec(request.url ?? '')?.[1], request, refuseByHeaders(request)?.reason);
      return isRefused;
    },
  };
}

/** The address of a link's hook; the shared one has no token. */
const HOOK = /^\/hooks\/([A-Za-z0-9_-]{32})(?:\?|$)/;

function hookRoutes(options: ReceiveOptions, unread: UnreadRefusals): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.post('/hooks/:token', (request, response) => byToken(options, unread, request, response));
  router.post('/hooks', (request, response) => byBody(options, request, response));
  for (const path of ['/hooks/:token', '/hooks']) {
    router.options(path, (request, response, next) => {
      if (options.crossOrigin === null) next();
      else preflight(options.crossOrigin, options.headerNames, request, response);
    });
    router.all(path, (request, response) => {
      send(response, ANSWERS.methodNotAllowed);
      options.onOutcome({ answer: ANSWERS.methodNotAllowed, outcome: 'other_method' }, 0);
      unread(request.params.token as string | undefined, request, 'method_not_allowed');
    });
  }
  return router;
}

/** The token picks the link, and so the secret, before a byte of the body is read. */
function byToken(options: ReceiveOptions, unread: UnreadRefusals, request: Request, response: Response): Promise<void> {
  const token = request.params.token as string;
  const { credentials } = options;
  const lookUp = async () => {
    if (!TOKEN.test(token)) return null;
    return credentials.cachedByToken(token) ?? (await options.lookUp({ token }));
  };
  const way = { lookUpFirst: true, lookUp, keepsRejections: true };
  return receive(options, request, response, { ...way, unread: (reason) => unread(token, request, reason) });
}

/** One lookup key is read from the unverified body; the signature then decides. Failures leave no trace. */
function byBody(options: ReceiveOptions, request: Request, response: Response): Promise<void> {
  const lookUp: FindLink = async (body) => {
    const linkIds = readUnverifiedLinkIds(body);
    const [linkId] = linkIds;
    if (linkId === undefined || linkIds.length > 1) return null;
    return options.lookUp({ linkId });
  };
  const unread = (reason: KeptReason) => options.onUnread({ reason, order: undefined });
  return receive(options, request, response, { lookUpFirst: false, lookUp, keepsRejections: false, unread });
}

type Way = {
  lookUpFirst: boolean;
  lookUp: FindLink;
  keepsRejections: boolean;
  /** Tells, and perhaps keeps, why it was refused unread. */
  unread: (reason: KeptReason) => void;
};

/** Tells that a delivery was refused before its signature was looked at, and keeps that of a link that has this token. */
type UnreadRefusals = (token: string | undefined, request: IncomingMessage, reason: KeptReason | undefined) => void;

/** Tokens that are looked up at once for that, at most: they were answered, so what is more is not kept. */
const UNREAD_LOOK_UPS_MAX = 4;

/** They were answered before anybody asked whether there is such a link, so that the answer takes the same time. */
function unreadRefusals({ credentials, rejections, onUnread }: ReceiveOptions): UnreadRefusals {
  let lookingUp = 0;
  async function find(token: string): Promise<LinkCredentials | null> {
    if (lookingUp >= UNREAD_LOOK_UPS_MAX) return null;
    lookingUp++;
    try {
      return await credentials.find({ token });
    } catch {
      return null;
    } finally {
      lookingUp--;
    }
  }
  return async (token, request, reason) => {
    if (reason === undefined) return;
    const { method, headers } = request;
    const isToken = token !== undefined && TOKEN.test(token);
    const link = isToken ? (credentials.cachedByToken(token) ?? (await find(token))) : null;
    if (link?.isProbe === true) return;
    onUnread({ reason, order: link?.reference });
    if (link === null) return;
    rejections.add(link.linkKey, reason, () => diagnoseUnread({ method, headers }, reason));
  };
}

async function receive(options: ReceiveOptions, request: Request, response: Response, way: Way): Promise<void> {
  const { clock, crossOrigin, onOutcome } = options;
  const headersAt = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  const ended = await take(options, request, way, headersAt.wallMs);
  if (ended.outcome !== 'aborted') {
    if (crossOrigin !== null) crossOriginHeaders(crossOrigin, request, response);
    send(response, ended.answer);
  }
  onOutcome(ended, clock.monotonicMs() - headersAt.monotonicMs);
  ended.afterwards?.();
}

const EMPTY = Buffer.alloc(0);

async function take(options: ReceiveOptions, request: Request, way: Way, headersAtMs: number): Promise<Ended> {
  const { isClosed, bodies } = options;
  if (isClosed()) return { answer: ANSWERS.stopping, outcome: 'refused' };
  const refused = refuseByHeaders(request);
  if (refused !== null) {
    const { answer, outcome, reason } = refused;
    return { answer, outcome, afterwards: () => way.unread(reason) };
  }
  let before: LinkCredentials | null = null;
  try {
    before = way.lookUpFirst ? await way.lookUp(EMPTY) : null;
    const named = nameOf(before);
    const share = before === null ? 'others' : 'addressed';
    if (before !== null && !request.complete) options.onNamed(request);
    const read = await bodies.read(request, share);
    if (read.outcome === 'no_room') {
      await bodies.skip(request);
      return { answer: ANSWERS.unavailable, outcome: 'shed', ...named };
    }
    if (read.outcome === 'crowded_out') return { answer: ANSWERS.crowdedOut, outcome: 'shed', ...named };
    if (read.outcome !== 'read') {
      const ended: Ended = { outcome: read.outcome, answer: UNREAD[read.outcome], ...named };
      if (read.outcome !== 'too_large') return ended;
      return { ...ended, afterwards: () => way.unread('body_too_large') };
    }
    try {
      return await takeBody(options, request, way, { before, headersAtMs, body: read.body });
    } finally {
      bodies.giveBack(read.room);
    }
  } catch (error) {
    const named = nameOf(isUndecipherable(error) ? error : before);
    const failed: Ended = { answer: ANSWERS.unavailable, outcome: 'failed', fault: error, ...named };
    if (!way.keepsRejections || !isUndecipherable(error)) return failed;
    // Whatever it says, the service can be asked; a forger can have no more asked than with any other delivery.
    const { linkKey } = error;
    return { ...failed, afterwards: () => options.rejections.add(linkKey, 'secret_undecipherable') };
  }
}

/** The link that a delivery named. That of a probe has no order. */
function nameOf(link: { reference: string } | null): Pick<Ended, 'link'> {
  return link === null || link.reference === '' ? {} : { link };
}

function isUndecipherable(error: unknown): error is LinkFault {
  return error instanceof LinkFault && error.code === 'secret_undecipherable';
}

async function takeBody(
  options: ReceiveOptions,
  request: Request,
  way: Way,
  { before, headersAtMs, body }: { before: LinkCredentials | null; headersAtMs: number; body: Buffer },
): Promise<Ended> {
  const credentials = way.lookUpFirst ? before : await way.lookUp(body);
  const { rawHeaders } = request;
  return takeDelivery(options, { rawHeaders, body, credentials, headersAtMs }, way.keepsRejections);
}

const UNREAD: Record<'too_large' | 'aborted' | 'refused', Answer> = {
  too_large: ANSWERS.tooLarge,
  aborted: ANSWERS.unavailable,
  refused: ANSWERS.stopping,
};

/** For requests that wait for `100 Continue`: answers those that would be refused unread. */
export function refuseContinue(request: IncomingMessage, response: ServerResponse): boolean {
  const refused = refuseByHeaders(request);
  if (refused === null) return false;
  send(response, refused.answer);
  return true;
}

type Refused = { answer: Answer; outcome: 'encoded' | 'too_large'; reason: KeptReason };

function refuseByHeaders(request: IncomingMessage): Refused | null {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return { answer: ANSWERS.encoded, outcome: 'encoded', reason: 'content_encoding' };
  }
  if (!announcesTooMuch(request)) return null;
  return { answer: ANSWERS.tooLarge, outcome: 'too_large', reason: 'body_too_large' };
}
