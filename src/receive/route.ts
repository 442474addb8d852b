import type { IncomingMessage, ServerResponse } from 'node:http';
import express, { type Request, type Response, type Router } from 'express';
import { type Fault, LinkFault, transientFault } from '../fault.ts';
import { readUnverifiedLinkIds } from '../paylink/events.ts';
import type { Credentials, LinkCredentials } from '../secrets/credentials.ts';
import type { KeptReason } from '../vocabulary.ts';
import { openSemaphore } from '../work/signal.ts';
import { ANSWERS, answerPreflight, crossOriginHeaders, send } from './answers.ts';
import { announcesTooMuch, type BodyReader, type NotRead } from './body.ts';
import { type DeliveryOptions, type EndedDelivery, takeDelivery } from './record.ts';
import { diagnoseUnread, type NamedBy, type RejectionLog } from './rejections.ts';

export type ReceiveOptions = DeliveryOptions & {
  bodies: BodyReader;
  rejections: Pick<RejectionLog, 'add'>;
  /** Called when a request names a known link. */
  onNamed: (request: IncomingMessage) => void;
  /** The origin whose pages may deliver from a browser; null if none may. */
  crossOrigin: string | null;
  /** Whether the process is stopping and accepts no more deliveries. */
  isClosed: () => boolean;
  onOutcome: (ended: EndedDelivery, sinceHeadersMs: number) => void;
  /** Called after settled refused a delivery without reading its body; `order` is the order whose link it named. */
  onUnread: (refused: { reason: KeptReason; order: string | undefined }) => void;
};

/** The path of a link's hook, with its token. */
const HOOK = /^\/hooks\/([A-Za-z0-9_-]{32})\/?(?:\?|$)/;

/** A slash at the end is the same address: proxies add one. */
const TOKEN_PATHS = ['/hooks/:token', '/hooks/:token/'];
const SHARED_PATHS = ['/hooks', '/hooks/'];

/**
 * Makes the routes that take deliveries: `POST /hooks/<token>`, and `POST /hooks` for links whose address is fixed.
 * `refuseContinue` answers requests that wait for `100 Continue`.
 */
export function hooksOf(options: ReceiveOptions): {
  router: Router;
  refuseContinue: (request: IncomingMessage, response: ServerResponse) => boolean;
} {
  const { crossOrigin, headerNames, onOutcome } = options;
  const noteUnread = unreadNotes(options);
  const hook = { ...options, noteUnread, findLink: openFindLink(options.credentials) };
  const router = express.Router({ caseSensitive: true, strict: true });
  router.post(TOKEN_PATHS, (request, response) => receive(hook, takeByToken, request, response));
  router.post(SHARED_PATHS, (request, response) => receive(hook, takeByBody, request, response));
  for (const path of [...TOKEN_PATHS, ...SHARED_PATHS]) {
    router.options(path, (request, response, next) => {
      if (crossOrigin === null) next();
      else answerPreflight(crossOrigin, headerNames, request, response);
    });
    router.all(path, (request, response) => {
      send(response, ANSWERS.methodNotAllowed);
      onOutcome({ answer: ANSWERS.methodNotAllowed, outcome: 'other_method' }, 0);
      noteUnread(request, request.params.token as string | undefined, 'method_not_allowed');
    });
  }
  router.use((request, _response, next) => {
    const token = request.path.split('/').find((part) => TOKEN.test(part));
    if (token !== undefined) noteUnread(request, token, 'wrong_address');
    next();
  });
  return {
    router,
    refuseContinue: (request, response) =>
      refuseContinue(request, response, (why) => noteUnread(request, HOOK.exec(request.url ?? '')?.[1], why)),
  };
}

type Hook = ReceiveOptions & { noteUnread: NoteUnread; findLink: FindLink };
type Take = (hook: Hook, request: Request, headersAtMs: number) => Promise<EndedDelivery>;

/** Takes a delivery with `take`, answers it, and then does its remaining work. */
async function receive(hook: Hook, take: Take, request: Request, response: Response): Promise<void> {
  const { clock, crossOrigin, isClosed, onOutcome, noteUnread } = hook;
  const headersAt = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
  const ended: EndedDelivery = isClosed()
    ? { answer: ANSWERS.stopping, outcome: 'refused' }
    : (refuseByHeaders(request) ?? (await take(hook, request, headersAt.wallMs)));
  if (ended.outcome !== 'aborted') {
    if (crossOrigin !== null) crossOriginHeaders(crossOrigin, request, response);
    send(response, ended.answer);
  }
  onOutcome(ended, clock.monotonicMs() - headersAt.monotonicMs);
  ended.afterwards?.();
  if (ended.unread !== undefined) noteUnread(request, request.params.token as string | undefined, ended.unread);
}

/** The tokens that settled makes: 24 random bytes in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{32}$/;

/**
 * `POST /hooks/<token>`: the token picks the link and its secret before settled reads any of the body. If settled
 * refuses the delivery, the link keeps the reason.
 */
async function takeByToken(hook: Hook, request: Request, headersAtMs: number): Promise<EndedDelivery> {
  const { bodies, credentials, findLink, onNamed, rejections } = hook;
  const { rawHeaders } = request;
  const token = request.params.token as string;
  let link: LinkCredentials | null = null;
  try {
    if (TOKEN.test(token)) link = credentials.cachedByToken(token) ?? (await findLink({ token }));
    if (link !== null) onNamed(request);
    const read = await bodies.read(request, link === null ? 'others' : 'addressed');
    if (read.outcome !== 'read') return { ...(await endUnread(bodies, request, read)), ...nameOf(link) };
    try {
      return keepRefusal(hook, await takeDelivery(hook, { rawHeaders, body: read.body, link, headersAtMs }), 'token');
    } finally {
      bodies.giveBack(read.room);
    }
  } catch (error) {
    const ended = failed(error, link);
    if (!isUndecipherable(error)) return ended;
    // settled can ask the service, whatever the body says. A forger causes no more checks than with any other delivery.
    return { ...ended, afterwards: () => rejections.add(error.linkKey, 'secret_undecipherable') };
  }
}

/** Has the link keep why settled refused a delivery, once that is answered. */
function keepRefusal({ rejections }: Hook, ended: EndedDelivery, namedBy: NamedBy): EndedDelivery {
  const { link, reason, diagnose } = ended;
  if (link === undefined || reason === undefined) return ended;
  return { ...ended, afterwards: () => rejections.add(link.linkKey, reason, { find: diagnose, namedBy }) };
}

/**
 * `POST /hooks`: reads a link id from the unverified body; the signature then decides. The link keeps the reason of a
 * rejection, but as the customer knows the id too, it causes no check and raises nothing.
 */
async function takeByBody(hook: Hook, request: Request, headersAtMs: number): Promise<EndedDelivery> {
  const { bodies, findLink, rejections } = hook;
  const { rawHeaders } = request;
  try {
    const read = await bodies.read(request, 'others');
    if (read.outcome !== 'read') return await endUnread(bodies, request, read);
    const { body, room } = read;
    try {
      const [linkId, ...others] = readUnverifiedLinkIds(body);
      const link = linkId === undefined || others.length > 0 ? null : await findLink({ linkId });
      return keepRefusal(hook, await takeDelivery(hook, { rawHeaders, body, link, headersAtMs }), 'body');
    } finally {
      bodies.giveBack(room);
    }
  } catch (error) {
    const ended = failed(error, null);
    if (!isUndecipherable(error)) return ended;
    return { ...ended, afterwards: () => rejections.add(error.linkKey, 'secret_undecipherable', { namedBy: 'body' }) };
  }
}

/** Answers a delivery whose body was not read whole. */
async function endUnread(bodies: BodyReader, request: Request, { outcome }: NotRead): Promise<EndedDelivery> {
  switch (outcome) {
    case 'no_room':
      await bodies.skip(request);
      return { answer: ANSWERS.unavailable, outcome: 'shed' };
    case 'crowded_out':
      return { answer: ANSWERS.crowdedOut, outcome: 'shed' };
    case 'too_large':
      return { answer: ANSWERS.tooLarge, outcome, unread: 'body_too_large' };
    case 'aborted':
      return { answer: ANSWERS.unavailable, outcome };
    case 'refused':
      return { answer: ANSWERS.stopping, outcome };
  }
}

function failed(error: unknown, link: LinkCredentials | null): EndedDelivery {
  const named = nameOf(isUndecipherable(error) ? error : link);
  return { answer: ANSWERS.unavailable, outcome: 'failed', fault: error, ...named };
}

/** The link that a delivery named. The link of a probe has no order, so it is left out. */
function nameOf(link: { linkKey: number; reference: string } | null): Pick<EndedDelivery, 'link'> {
  return link === null || link.reference === '' ? {} : { link };
}

function isUndecipherable(error: unknown): error is LinkFault {
  return error instanceof LinkFault && error.code === 'secret_undecipherable';
}

/** Answers a request that waits for `100 Continue` if settled would refuse it unread. Returns false if it would not. */
export function refuseContinue(
  request: IncomingMessage,
  response: ServerResponse,
  onRefused: (reason: KeptReason) => void = () => {},
): boolean {
  const refused = refuseByHeaders(request);
  if (refused === null) return false;
  send(response, refused.answer);
  onRefused(refused.unread);
  return true;
}

function refuseByHeaders(request: IncomingMessage): (EndedDelivery & { unread: KeptReason }) | null {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    return { answer: ANSWERS.encoded, outcome: 'encoded', unread: 'content_encoding' };
  }
  if (!announcesTooMuch(request)) return null;
  return { answer: ANSWERS.tooLarge, outcome: 'too_large', unread: 'body_too_large' };
}

/** Notes that settled refused a delivery before reading its signature, at the link that the token names, if any. */
type NoteUnread = (request: IncomingMessage, token: string | undefined, reason: KeptReason) => void;

/** The most tokens looked up at once for such notes. Their deliveries were answered; further ones are not noted. */
const UNREAD_LOOK_UPS_MAX = 4;

/** Looks the link up after the answer, so that the answer takes the same time whether the token names a link or not. */
function unreadNotes({ credentials, rejections, onUnread }: ReceiveOptions): NoteUnread {
  const lookUps = openSemaphore(UNREAD_LOOK_UPS_MAX, { waitingMax: 0, refusal: tooMany });
  const find = (token: string) => lookUps.hold(() => credentials.find({ token })).catch(() => null);
  return async ({ method, headers }, token, reason) => {
    const isToken = token !== undefined && TOKEN.test(token);
    const link = isToken ? (credentials.cachedByToken(token) ?? (await find(token))) : null;
    if (link?.isProbe === true || (link === null && reason === 'wrong_address')) return;
    onUnread({ reason, order: link?.reference });
    if (link === null) return;
    rejections.add(link.linkKey, reason, { find: () => diagnoseUnread({ method, headers }, reason) });
  };
}

/**
 * The most look-ups in the store's queue at once for links that no delivery named before. During a flood, a turn of the
 * event loop takes 0.1 s and ends the look-ups of the turn before. With 64, a new link waited for 5 s.
 */
const UNDER_WAY_MAX = 256;
/** The most look-ups that wait for a place in that queue: some tenths of a second. */
const WAITING_MAX = 2_000;

/**
 * Finds the credentials to verify a delivery with; null if the link is unknown. Throws if the store cannot answer, with
 * the fault `store_busy` if there are too many look-ups.
 */
export type FindLink = (by: { token: string } | { linkId: string }) => Promise<LinkCredentials | null>;

/**
 * Gives look-ups of unknown links a small share of the store's queue, because anyone can send tokens that no link has.
 * A link that a delivery named before, and every other call of the store, never waits behind them.
 */
export function openFindLink(credentials: Credentials): FindLink {
  const lookUps = openSemaphore(UNDER_WAY_MAX, { waitingMax: WAITING_MAX, refusal: tooMany });
  return async (by) => {
    const isToken = 'token' in by;
    const cached = isToken ? credentials.cachedByToken(by.token) : credentials.cachedByLinkId(by.linkId);
    if (cached !== undefined) return cached;
    if (credentials.knows(isToken ? by.token : by.linkId)) return credentials.find(by);
    return lookUps.hold(() => credentials.find(by));
  };
}

function tooMany(): Fault {
  const message = 'Too many deliveries wait whose links have to be looked up first: most name none. They come again.';
  return transientFault('store_busy', message);
}
