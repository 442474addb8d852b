import type { RequestClass } from '../domain/budget.ts';
import { formatAmount, type Money, parseAmount } from '../domain/money.ts';
import type { Customer } from '../domain/payment_details.ts';
import { type Fault, terminalFault } from '../fault.ts';
import { parseJsonText } from '../json.ts';
import {
  carriesToken,
  changedAddress,
  goesElsewhere,
  type LinkSeen,
  type NewLink,
  type Service,
  ServiceFault,
  webhookBase,
} from '../paylink/service.ts';
import type { ClaimedOpening } from '../store/verbs/intents.ts';
import { type KeepOptions, keepServiceSecret } from './service_secret.ts';

/** The result of one attempt to open a link. Faults of the service are thrown instead. */
export type AttemptResult =
  /** The link exists and is the order's. `withheld`: why the shop must not get it, as a sentence; null if it may. */
  | {
      found: 'link';
      link: LinkSeen;
      withheld: string | null;
      /** Whether settled missed the answer to the creation, and with it a secret that the service may have named. */
      answerLost: boolean;
      /** The public address that the link's webhookUrl has; null if it is not known. */
      webhookBase: string | null;
      /** The address to which the service says it delivers: null if it is ours, undefined if it does not say. */
      webhookChangedTo?: string | null | undefined;
    }
  /** The reference belongs to a link that settled did not make. */
  | { found: 'foreign'; id: string }
  /** The service refuses, and has no such link. */
  | { found: 'refusal'; fault: ServiceFault };

/** A reference has at most one link (spec §2). More are an error of the service. */
const LINKS_LOOKED_AT_MAX = 2;

export type AttemptOptions = KeepOptions & {
  service: Service;
  publicUrl: string;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
};

/**
 * Creates the link, or finds the one that an earlier attempt created whose answer was lost. A 409 does not say whose
 * link it is: only a link whose webhookUrl has our token has our signing secret.
 */
export async function attemptOpening(options: AttemptOptions, opening: ClaimedOpening): Promise<AttemptResult> {
  const { service, publicUrl, publicUrlReaches } = options;
  const { reference } = opening;
  const as = classOf(opening);
  if (opening.linkId !== null) {
    return agreed(opening, await show(service, opening.linkId, as), { answerLost: true });
  }
  if (!publicUrlReaches) throw privateUrl(publicUrl);
  try {
    const asked = newLink(options, opening);
    const { value } = await service.createLink(asked, as);
    // A service may answer a repeated reference with its existing link, even one that settled did not make.
    const isForeign = (link: LinkSeen) => goesElsewhere(link, asked.webhookUrl);
    if (!isForeign(value)) await keepServiceSecret(options, opening, value);
    const link = isWhole(value) ? value : await existing(show(service, value.id, as));
    if (isForeign(link)) return { found: 'foreign', id: link.id };
    const webhookChangedTo = link.webhookUrl === null ? undefined : changedAddress(link, asked.webhookUrl);
    return { ...agreed(opening, link, { answerLost: false }), webhookBase: publicUrl, webhookChangedTo };
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    if (error.code === 'service_conflict') {
      const own = await existing(findOwn(service, opening));
      // The service's list may lag behind.
      if (own === null) throw unclear(`The service says that reference ${reference} exists, and lists no link of it`);
      return own;
    }
    // A refusal says nothing about an earlier request whose answer was lost.
    if (error.code !== 'service_refused') throw error;
    return (opening.mayExist ? await findOwn(service, opening) : null) ?? { found: 'refusal', fault: error };
  }
}

/** A customer waits during the first attempts. Later ones must not delay the first attempts of other orders. */
function classOf({ attempt }: ClaimedOpening): RequestClass {
  return attempt <= 2 ? 'create' : 'confirm';
}

function newLink({ keyring, publicUrl }: AttemptOptions, opening: ClaimedOpening): NewLink {
  const { reference, request, token, returnToken, expiresAtMs } = opening;
  const asked = readRequest(request);
  return {
    ...asked,
    externalReference: reference,
    expiresAt: new Date(expiresAtMs).toISOString(),
    webhookUrl: `${publicUrl}/hooks/${token}`,
    webhookSecret: keyring.open(opening),
    callbackUrl: returnToken === null ? asked.callbackUrl : `${publicUrl}/return/${returnToken}`,
  };
}

/** The public address has changed since the order was opened, and a link's webhookUrl cannot be changed. */
function privateUrl(publicUrl: string): Fault {
  return terminalFault(
    'configuration_invalid',
    `No link is made with ${publicUrl}: the service cannot deliver there. Set SETTLED_PUBLIC_URL to the https address ` +
      'under which it reaches settled, and restart it.',
  );
}

/** Whether the answer to the creation has what the shop needs and what settled compares. */
function isWhole({ url, money }: LinkSeen): boolean {
  return url !== null && money.amount !== null && money.currency !== null;
}

async function show(service: Service, id: string, as: RequestClass): Promise<LinkSeen> {
  return (await service.showLink(id, as)).value;
}

/** Asks about a link that the service says it has. It counts as existing even if the request fails. */
async function existing<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    const { kind, code, message, status, retryAtMs } = error;
    throw new ServiceFault(kind, code, message, { status, retryAtMs, mayHaveArrived: true });
  }
}

/** Looks the reference up. Null if the service lists no link with it. */
async function findOwn(service: Service, opening: ClaimedOpening): Promise<AttemptResult | null> {
  const as = classOf(opening);
  const { reference } = opening;
  const { value: listed, isWhole } = await service.findLinks(reference, as);
  for (const { id } of listed.slice(0, LINKS_LOOKED_AT_MAX)) {
    const link = await show(service, id, as);
    if (carriesToken(link, opening.token)) return agreed(opening, link, { answerLost: true });
  }
  const [other] = listed;
  if (other !== undefined) return { found: 'foreign', id: other.id };
  if (isWhole) return null;
  // The link may exist although it is not listed.
  const what = `The service lists other links than those of reference ${reference}, and its link is not among the newest`;
  throw unclear(what);
}

/** The found link, withheld if a customer would pay something else there than the order asks for. */
function agreed(
  opening: ClaimedOpening,
  link: LinkSeen,
  { answerLost }: { answerLost: boolean },
): Extract<AttemptResult, { found: 'link' }> {
  if (link.url !== null) {
    const base = webhookBase(link, opening.token);
    return { found: 'link', link, withheld: mismatchOf(link, opening), answerLost, webhookBase: base };
  }
  const message = `The service has link ${link.id} and does not say its address. Asking again.`;
  throw new ServiceFault('transient', 'service_answer_unusable', message, { mayHaveArrived: true });
}

/** The fault of an attempt after which the link may exist; the next attempt may find it. */
function unclear(what: string): ServiceFault {
  return new ServiceFault('transient', 'service_conflict', `${what}. Trying again.`, { mayHaveArrived: true });
}

/** Why a customer must not be sent to the link, as a sentence; null if no reason is known. */
function mismatchOf(link: LinkSeen, { amount, reference }: { amount: Money; reference: string }): string | null {
  const { money } = link;
  if (money.currency !== null && money.currency !== amount.currency) {
    return `The service made the link in ${plain(money.currency)}, and the order is in ${amount.currency}.`;
  }
  const parsed = money.amount === null ? null : parseAmount(money.amount, amount.currency);
  if (parsed !== null && (!parsed.ok || parsed.amountMinor !== amount.amountMinor)) {
    return `The service made the link for ${plain(money.amount)}, and the order is for ${formatAmount(amount)}.`;
  }
  return link.reference === null || link.reference === reference
    ? null
    : 'The service made the link for another reference.';
}

/** Repeats only a currency or a number: a faulty service may put anything here, even our own secrets. */
function plain(stated: string | null): string {
  return stated !== null && /^([A-Z][A-Z0-9]{2,11}|[0-9.eE+-]{1,24})$/.test(stated) ? stated : 'something else';
}

/** A shop's request for a link. Absent fields are null. */
export type OpenRequest = {
  reference: string;
  title: string;
  amount: Money;
  description: string | null;
  expiresAtMs: number | null;
  metadata: Record<string, unknown> | null;
  callbackUrl: string | null;
  /** Kept for people alone: no part of what the service gets. */
  customer?: Customer | null;
};

/** The part of a request that must be equal when it is repeated, as JSON. Equal requests give equal texts. */
export function writeRequest(request: OpenRequest): string {
  const { title, amount, description, expiresAtMs, metadata, callbackUrl } = request;
  return JSON.stringify({
    title,
    amount: formatAmount(amount),
    currency: amount.currency,
    description,
    expiresAt: expiresAtMs === null ? null : new Date(expiresAtMs).toISOString(),
    metadata: sorted(metadata),
    callbackUrl,
  });
}

type Stored = Pick<NewLink, 'title' | 'amount' | 'description' | 'metadata' | 'callbackUrl'>;

/** Reads what `writeRequest` wrote. */
export function readRequest(text: string): Stored {
  const { title, amount, description, metadata, callbackUrl } = parseJsonText(text) as Stored;
  return { title, amount, description, metadata, callbackUrl };
}

/** Names the fields in which a request differs from a written one. */
export function differingFields(written: string, request: OpenRequest): string[] {
  const before = parseJsonText(written) as Record<string, unknown>;
  const now = parseJsonText(writeRequest(request)) as Record<string, unknown>;
  return Object.keys(now).filter((name) => JSON.stringify(now[name]) !== JSON.stringify(before[name]));
}

/** The same value with the keys of every object sorted. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, sorted(inner)]));
}
