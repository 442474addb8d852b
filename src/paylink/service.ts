import type { BudgetAsk, BudgetReturn, BudgetTaken, RequestClass } from '../domain/budget.ts';
import type { StatedMoney } from '../domain/money.ts';
import { Fault, type FaultCode } from '../fault.ts';
import type { Clock } from '../work/clock.ts';

/**
 * The payment-link service's API (spec §4), used within a budget. Every call takes a slot before its request leaves. It
 * throws a `ServiceFault` if the answer is not as the spec says. No fault and no log contains the API key.
 */
export type Service = {
  /** `GET /merchant/profile` */
  profile(as: RequestClass): Promise<Answered<Profile>>;
  /** `POST /payment-links` */
  createLink(link: NewLink, as: RequestClass): Promise<Answered<LinkMade>>;
  /**
   * `GET /payment-links?externalReference=`: the links of that reference, none or one. `isWhole`: whether an empty
   * result is certain, because the service did not list other links in spite of the filter.
   */
  findLinks(reference: string, as: RequestClass): Promise<Answered<LinkSeen[]> & { isWhole: boolean }>;
  /** `GET /payment-links?page=`: newest first. */
  listLinks(page: number, as: RequestClass): Promise<Answered<ListPage>>;
  /** `GET /payment-links/{id}` */
  showLink(id: string, as: RequestClass): Promise<Answered<LinkSeen>>;
};

export type Answered<T> = {
  /** The number of the request's slot, which orders readings. */
  number: number;
  value: T;
  /** The body as received. */
  body: Uint8Array;
  /** The service's clock, from its `Date` header. */
  dateMs: number | null;
};

export type Profile = { id: string; businessName: string | null; status: string | null };
export type ListPage = { links: LinkSeen[]; totalPages: number | null };

/** The fields to create a link with. `amount` is a decimal string. */
export type NewLink = {
  title: string;
  amount: string;
  description: string | null;
  externalReference: string;
  /** ISO 8601, UTC. */
  expiresAt: string;
  metadata: Record<string, unknown> | null;
  webhookUrl: string;
  webhookSecret: string;
  callbackUrl: string | null;
};

/** A link as an answer shows it. What the answer leaves out is null. */
export type LinkSeen = {
  id: string;
  reference: string | null;
  money: StatedMoney;
  /** In capitals. */
  status: string;
  url: string | null;
  shortUrl: string | null;
  webhookUrl: string | null;
  createdAtMs: number | null;
  expiresAtMs: number | null;
  /** In capitals; only in details. */
  paymentStatus: string | null;
  /** The number of payments in the details. */
  payments: number;
};

/** A link as the answer to its creation shows it. */
export type LinkMade = LinkSeen & {
  /** Values of `webhookSecret` in the answer other than the one that settled gave; usually none. Never log these. */
  webhookSecrets: readonly string[];
};

/**
 * Whether a link's events come to this token's address, however the service spells it: with a slash or a query at its
 * end, or with encoded characters. The link's signing secret is then the token's too.
 */
export function carriesToken({ webhookUrl }: Pick<LinkSeen, 'webhookUrl'>, token: string): boolean {
  return webhookUrl !== null && pathOf(webhookUrl).replace(/\/$/, '').endsWith(`/hooks/${token}`);
}

/** The public address in a link's webhookUrl, before `/hooks/` and this token; null if it has no such token. */
export function webhookBase({ webhookUrl }: Pick<LinkSeen, 'webhookUrl'>, token: string): string | null {
  const at = webhookUrl?.indexOf(`/hooks/${token}`) ?? -1;
  return webhookUrl === null || at < 0 ? null : webhookUrl.slice(0, at);
}

/** Placeholders for hidden characters. */
const HIDDEN = /\*{3}|\.{3}|\u2026|hidden|masked|redacted/i;

/**
 * Whether a link's events evidently go elsewhere than to the address that settled gave. An address that is absent,
 * masked or cut off does not say.
 */
export function goesElsewhere(link: Pick<LinkSeen, 'webhookUrl'>, given: string): boolean {
  const { webhookUrl } = link;
  if (webhookUrl === null || HIDDEN.test(webhookUrl) || given.startsWith(webhookUrl)) return false;
  return !carriesToken(link, lastPart(given));
}

/**
 * The address to which the service says it delivers, if it is another than the one given, without the token; null if
 * it is the same one, or unknown.
 */
export function changedAddress({ webhookUrl }: Pick<LinkSeen, 'webhookUrl'>, given: string): string | null {
  const token = lastPart(given);
  if (webhookUrl === null || !carriesToken({ webhookUrl }, token)) return null;
  const [said, own] = [webhookUrl, given].map((address) => URL.parse(address)?.href ?? address) as [string, string];
  if (said === own) return null;
  return (said.includes(token) ? said : decodePath(said)).replaceAll(token, '\u2026');
}

function lastPart(address: string): string {
  return address.slice(address.lastIndexOf('/') + 1);
}

function pathOf(address: string): string {
  return decodePath(URL.parse(address)?.pathname ?? '');
}

function decodePath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** The API budget, which the store implements. */
export type Budget = {
  takeBudget(ask: BudgetAsk): Promise<BudgetTaken>;
  returnBudget(given: BudgetReturn): Promise<void>;
};

/** Whether the service answered that it has no such link. If it does not find the list, the address is wrong. */
export function isMissing({ code, kind }: ServiceFault): boolean {
  return code === 'service_not_found' && kind === 'terminal';
}

/** A failed call of the service. Its message names the call and quotes the service. */
export class ServiceFault extends Fault {
  /** The HTTP status; null if no answer came. */
  readonly status: number | null;
  /** When a retry makes sense; null if the caller's own backoff decides. */
  readonly retryAtMs: number | null;
  /** Whether the service may have done what it was asked to. */
  readonly mayHaveArrived: boolean;

  constructor(
    kind: 'transient' | 'terminal',
    code: FaultCode,
    message: string,
    more: { status?: number | null; retryAtMs?: number | null; mayHaveArrived?: boolean } = {},
  ) {
    super(kind, code, message);
    this.status = more.status ?? null;
    this.retryAtMs = more.retryAtMs ?? null;
    this.mayHaveArrived = more.mayHaveArrived ?? false;
  }
}

/** The most bytes read of an answer's body. */
const BODY_BYTES_MAX = 1024 * 1024;

export type Exchange = {
  /** For messages: `GET /payment-links/{id}`. */
  name: string;
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string | null;
  /** For connecting, headers and body together. */
  deadlineMs: number;
  deadlineClock: Pick<Clock, 'after'>;
  /** Ends the request before its deadline. */
  closing: AbortSignal;
};

export type Reply = {
  status: number;
  headers: Headers;
  /** Empty if it did not arrive whole; `bodyFault` then says why. */
  body: Uint8Array;
  bodyFault: ServiceFault | null;
};

/**
 * Sends one request. Follows no redirects, because the key must not travel to another server.
 * Faults, all transient: `service_unreachable`, `service_timeout`. Once the headers came, these and
 * `service_answer_too_large` are returned instead.
 */
export async function send(exchange: Exchange): Promise<Reply> {
  const { method, url, headers, body, deadlineMs, deadlineClock, closing } = exchange;
  const controller = new AbortController();
  const abort = () => controller.abort();
  const cancel = deadlineClock.after(deadlineMs, abort);
  closing.addEventListener('abort', abort);
  if (closing.aborted) abort();
  try {
    const response = await fetch(url, { method, headers, body, redirect: 'manual', signal: controller.signal });
    const { status, headers: received } = response;
    try {
      return { status, headers: received, body: await readBody(response, exchange), bodyFault: null };
    } catch (error) {
      const bodyFault = toFault(error, exchange, controller.signal);
      return { status, headers: received, body: new Uint8Array(), bodyFault };
    }
  } catch (error) {
    throw toFault(error, exchange, controller.signal);
  } finally {
    cancel();
    closing.removeEventListener('abort', abort);
  }
}

async function readBody(response: Response, { name, method }: Exchange): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the rest of the response.
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) {
      throw new ServiceFault(
        'transient',
        'service_answer_too_large',
        `${name} answered ${response.status} with more than ${BODY_BYTES_MAX} bytes; no more were read. Check SETTLED_API_URL.`,
        { status: response.status, mayHaveArrived: method === 'POST' },
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function toFault(error: unknown, exchange: Exchange, { aborted }: AbortSignal): ServiceFault {
  if (error instanceof ServiceFault) return error;
  const { name, method, deadlineMs, closing } = exchange;
  if (aborted && !closing.aborted) {
    const message = `${name} was not answered within ${deadlineMs / 1_000} s.`;
    return new ServiceFault('transient', 'service_timeout', message, { mayHaveArrived: method === 'POST' });
  }
  const { code, neverLeft } = networkCause(error);
  const why = closing.aborted ? 'settled is stopping' : code;
  return new ServiceFault(
    'transient',
    'service_unreachable',
    `${name} got no complete answer: ${why}. Check SETTLED_API_URL and the network.`,
    { mayHaveArrived: method === 'POST' && (closing.aborted || !neverLeft) },
  );
}

/**
 * Why the network failed, in a word, and whether the request certainly was not read. Leaves out the error's own words,
 * which may quote headers.
 */
function networkCause(error: unknown): { code: string; neverLeft: boolean } {
  const { cause } = error as { cause?: { code?: unknown; syscall?: unknown; errors?: unknown } };
  // Several addresses of one name were tried.
  const [first] = Array.isArray(cause?.errors) ? cause.errors : [];
  const code = cause?.code ?? first?.code;
  const syscall = cause?.syscall ?? first?.syscall;
  return {
    code: typeof code === 'string' ? code : 'the connection failed',
    neverLeft: syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT',
  };
}
