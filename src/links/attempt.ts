import type { RequestClass } from '../domain/budget.ts';
import { formatAmount, type Money, parseAmount } from '../domain/money.ts';
import { Fault } from '../fault.ts';
import { carriesToken, type LinkSeen, type NewLink, type Service, ServiceFault } from '../paylink/service.ts';
import type { ClaimedOpening } from '../store/contract_links.ts';
import { readRequest } from './request.ts';
import { type KeepOptions, keepServiceSecret } from './service_secret.ts';

/** What one attempt to open a link found. Throws faults of the service. */
export type AttemptResult =
  /** The link exists, and is ours. `withheld` says in a sentence why the shop must not have it; null: it may. */
  | {
      found: 'link';
      link: LinkSeen;
      withheld: string | null;
      /** Whether the answer to its creation was lost, and with it a secret that the service may have named. */
      answerLost: boolean;
    }
  /** The reference belongs to a link that is not ours. */
  | { found: 'foreign'; id: string }
  /** The service refuses, and has no such link. */
  | { found: 'refusal'; fault: ServiceFault };

/** A reference has at most one link (spec §2); more are the service's mistake. */
const LINKS_LOOKED_AT_MAX = 2;

export type AttemptOptions = KeepOptions & {
  service: Service;
  publicUrl: string;
  /** Whether the service can deliver to `publicUrl`. */
  publicUrlReaches: boolean;
};

/**
 * Creates the link, or finds the one that an earlier attempt created before its answer was lost. A 409 does not say whose
 * the link is: only a link whose webhookUrl carries our token has our signing secret.
 */
export async function attemptOpening(options: AttemptOptions, opening: ClaimedOpening): Promise<AttemptResult> {
  const { service, publicUrl, publicUrlReaches } = options;
  const as = classOf(opening);
  if (opening.linkId !== null) {
    return agreed(opening, await show(service, opening.linkId, as), { answerLost: true });
  }
  if (!publicUrlReaches) throw privateUrl(publicUrl);
  try {
    const { value } = await service.createLink(newLink(options, opening), as);
    // A service may answer a repeated reference with its existing link, even if that is not ours.
    const isForeign = (link: LinkSeen) => link.webhookUrl !== null && !carriesToken(link, opening.token);
    if (!isForeign(value)) await keepServiceSecret(options, opening, value);
    const link = isWhole(value) ? value : await existing(show(service, value.id, as));
    return isForeign(link) ? foreign(link.id) : agreed(opening, link, { answerLost: false });
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    if (error.code === 'service_conflict') {
      return (await existing(findOwn(service, opening))) ?? missing(opening);
    }
    // A refusal says nothing about an earlier request whose answer was lost.
    if (error.code !== 'service_refused') throw error;
    return (opening.mayExist ? await findOwn(service, opening) : null) ?? { found: 'refusal', fault: error };
  }
}

/** In the first attempts a customer waits. Later ones must not delay the first attempts of other orders. */
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

/** The public address changed since the order was opened. A link's webhookUrl cannot be changed later. */
function privateUrl(publicUrl: string): Fault {
  return new Fault(
    'terminal',
    'configuration_invalid',
    `No link is made with ${publicUrl}: the service cannot deliver there. Set SETTLED_PUBLIC_URL to the https address ` +
      'under which it reaches settled, and restart it.',
  );
}

/** Whether the answer to the creation has what the shop needs, and what must be compared. */
function isWhole({ url, money }: LinkSeen): boolean {
  return url !== null && money.amount !== null && money.currency !== null;
}

async function show(service: Service, id: string, as: RequestClass): Promise<LinkSeen> {
  return (await service.showLink(id, as)).value;
}

/** Asks about a link that the service said it has, which stays true if the request fails. */
async function existing<T>(asking: Promise<T>): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (!(error instanceof ServiceFault)) throw error;
    const { kind, code, message, status, retryAtMs } = error;
    throw new ServiceFault(kind, code, message, { status, retryAtMs, mayHaveArrived: true });
  }
}

/** Looks the reference up; null if the service lists no link with it. */
async function findOwn(service: Service, opening: ClaimedOpening): Promise<AttemptResult | null> {
  const as = classOf(opening);
  const { value: listed, isWhole } = await service.findLinks(opening.reference, as);
  for (const { id } of listed.slice(0, LINKS_LOOKED_AT_MAX)) {
    const link = await show(service, id, as);
    if (carriesToken(link, opening.token)) return agreed(opening, link, { answerLost: true });
  }
  const [other] = listed;
  if (other !== undefined) return foreign(other.id);
  return isWhole ? null : hiddenAmongOthers(opening);
}

function foreign(id: string): AttemptResult {
  return { found: 'foreign', id };
}

/** The link may exist although it is not among the listed ones. */
function hiddenAmongOthers({ reference }: ClaimedOpening): never {
  const what = `The service lists other links than those of reference ${reference}, and its link is not among the newest`;
  throw unclear('service_conflict', `${what}. Trying again.`);
}

/** The service says that the reference is taken, and lists no link with it: its list may be late. */
function missing({ reference }: ClaimedOpening): never {
  const what = `The service says that reference ${reference} exists, and lists no link of it`;
  throw unclear('service_conflict', `${what}. Trying again.`);
}

/** The link; withheld if a customer would pay something else there than the order asks for. */
function agreed(opening: ClaimedOpening, link: LinkSeen, { answerLost }: { answerLost: boolean }): AttemptResult {
  if (link.url !== null) return { found: 'link', link, withheld: mismatchOf(link, opening), answerLost };
  const what = `The service has link ${link.id} and does not say its address`;
  throw unclear('service_answer_unusable', `${what}. Asking again.`);
}

/** The link may exist, and the next attempt may find it. */
function unclear(code: 'service_conflict' | 'service_answer_unusable', message: string): ServiceFault {
  return new ServiceFault('transient', code, message, { mayHaveArrived: true });
}

/** Says in a sentence why a customer must not be sent to the link; null if no reason is known. */
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

/** Repeats only a currency or a number: a faulty service may put anything there, even our own secrets. */
function plain(stated: string | null): string {
  return stated !== null && /^([A-Z][A-Z0-9]{2,11}|[0-9.eE+-]{1,24})$/.test(stated) ? stated : 'something else';
}
