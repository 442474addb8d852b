import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { isLoopback, isPrivateIp, isPublicAddress } from '../config/addresses.ts';
import { readConfig } from '../config/config.ts';
import type { Environment } from '../config/environment.ts';
import type { ListenAddress } from '../config/parsers.ts';
import { SETTINGS } from '../config/settings.ts';
import { Fault } from '../fault.ts';
import { hasBody } from '../receive/answers.ts';
import { systemClock } from '../work/clock.ts';
import { CommandError } from './exit.ts';
import { isGiven, settingText } from './init_files.ts';

/** How `settled init` tries each answer. */

/** The options that answer the questions, in the order in which they are asked. */
export const ANSWERS = ['service-url', 'api-key-file', 'public-url', 'store', 'shop-url'] as const;
export type AnswerName = (typeof ANSWERS)[number];

/** An answer that cannot be used: the message says why in a sentence. `of`: what must be answered anew. */
export class AnswerRefused extends CommandError {
  readonly of: AnswerName;
  readonly #code: RefusalCode;

  constructor(of: AnswerName, message: string, code: RefusalCode = 'answer_refused') {
    super(code, message);
    this.of = of;
    this.#code = code;
  }

  /** The same, saying by what the answer was given. */
  named(source: string): AnswerRefused {
    return new AnswerRefused(this.of, `${source}: ${this.message}`, this.#code);
  }
}

type RefusalCode = 'answer_refused' | 'answer_unreachable';

/** What a check found. A warning does not keep the answer from being used. */
export type CheckNote = { answer: AnswerName; status: 'ok' | 'warning'; detail: string };

/** Reads an answer as the start does. Throws `AnswerRefused`. */
export function parseAnswer<T>(of: AnswerName, what: string, text: string, parse: (text: string) => T): T {
  if (/\p{Cc}/u.test(text)) throw new AnswerRefused(of, `${what} has a control character in it.`);
  try {
    return parse(text);
  } catch (error) {
    throw new AnswerRefused(of, `${what} ${(error as Error).message}.`);
  }
}

/** Reads a setting that no question asks for. Throws `answer_refused`: asking again would not help. */
export function parseSetting<T>(name: string, text: string, parse: (text: string) => T): T {
  try {
    return parse(text);
  } catch (error) {
    throw new CommandError('answer_refused', `${name} ${(error as Error).message}.`);
  }
}

const ANSWER_MS = 5_000;

/** One request, with the key, which tells a wrong key from a service that is not there. */
export async function checkService(apiUrl: string, apiKey: string): Promise<CheckNote> {
  const { openService } = await import('../paylink/client.ts');
  const service = openService({
    url: apiUrl,
    readKey: () => apiKey,
    // The store that keeps the budget is not known yet.
    budget: { takeBudget: async () => ({ outcome: 'taken', number: 1 }), returnBudget: async () => {} },
    slots: 1,
    clock: systemClock,
    deadlineClock: systemClock,
  });
  try {
    const { value } = await service.profile('create');
    const detail = `the service knows this key as ${value.businessName ?? value.id}, ${value.status ?? 'no status given'}`;
    const isActive = value.status === null || value.status === 'ACTIVE';
    return { answer: 'api-key-file', status: isActive ? 'ok' : 'warning', detail };
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return judgeFault(fault, new URL(apiUrl).origin);
  }
}

/** @param service its origin */
function judgeFault({ code, message }: Fault, service: string): CheckNote {
  switch (code) {
    case 'service_key_refused':
      throw new AnswerRefused(
        'api-key-file',
        `The service at ${service} answers, and does not take this key (401): copy the key anew from the service's panel.`,
      );
    case 'service_forbidden':
      return { answer: 'api-key-file', status: 'warning', detail: message };
    case 'service_rate_limited':
      throw new AnswerRefused('api-key-file', `The key could not be tried: ${message}`, 'answer_unreachable');
    case 'service_unreachable':
    case 'service_timeout':
    case 'service_failed':
      throw new AnswerRefused(
        'service-url',
        `No service could be asked at ${service}: ${message}`,
        'answer_unreachable',
      );
    default:
      throw new AnswerRefused('service-url', `What answers at ${service} is not the service's API: ${message}`);
  }
}

/** Whether the service can deliver there, and whether what is sent there arrives at the public listener of this machine. */
export async function checkPublicUrl(publicUrl: string, apiUrl: string, listen: ListenAddress): Promise<CheckNote> {
  const { hostname, protocol } = new URL(publicUrl);
  const isLocal = isLoopback(hostname);
  if (protocol !== 'https:' && !isLocal) {
    throw new AnswerRefused(
      'public-url',
      'The service delivers over https only: give the https address of your proxy.',
    );
  }
  const serviceIsLocal = isLoopback(new URL(apiUrl).hostname);
  if (!serviceIsLocal && !isPublicAddress(publicUrl)) {
    throw new AnswerRefused(
      'public-url',
      `The service at ${new URL(apiUrl).origin} cannot deliver to ${publicUrl}, which only this ${isLocal ? 'machine' : 'network'} ` +
        'knows: give an https address that the internet reaches.',
    );
  }
  const problem = await wayProblem(publicUrl, listen);
  const detail = problem ?? `what is sent to ${publicUrl} arrives at ${addressText(listen)} of this machine`;
  return { answer: 'public-url', status: problem === null ? 'ok' : 'warning', detail };
}

/** Listens for a moment where settled will, and sends something there through the public address. Null: it arrived. */
async function wayProblem(publicUrl: string, listen: ListenAddress): Promise<string | null> {
  const [path, proof] = [`/hooks/${randomUUID()}`, randomUUID()];
  const server = createServer((request, response) => {
    response.writeHead(request.url === path ? 200 : 404).end(request.url === path ? proof : '');
  });
  const taken = await new Promise<string | null>((resolve) => {
    server.once('error', ({ code = '' }: NodeJS.ErrnoException) => resolve(code));
    server.listen(listen, () => resolve(null));
  });
  if (taken !== null) {
    return `${addressText(listen)} is in use (${taken}), by settled itself perhaps, so the way to it was not tried here`;
  }
  try {
    const answer = await fetch(publicUrl + path, {
      method: 'POST',
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    if (await hasBody(answer, proof)) return null;
    return `${publicUrl} does not lead to ${addressText(listen)} yet: something else answers there (${answer.status}). ${PROXY}`;
  } catch (error) {
    return `${publicUrl} does not lead to ${addressText(listen)} yet (${causeOf(error)}). ${PROXY}`;
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const PROXY = 'Until it does, no webhook arrives: see Proxy and TLS in docs/operations.md';

function addressText({ host, port }: ListenAddress): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function causeOf(error: unknown): string {
  const { cause, message } = error as Error & { cause?: { code?: string } };
  return cause?.code ?? message;
}

/**
 * Tries by real statements what settled needs of the store, as `settled doctor --store` does. Warns of a file that exists
 * and that no setting names: a trial may have left it. Faults: those of the probe.
 */
export async function checkStore(text: string, others: Environment, signal: AbortSignal): Promise<CheckNote> {
  const store = parseAnswer('store', 'The store', text, SETTINGS.store.parse);
  const direct = settingText(others, 'SETTLED_STORE_DIRECT');
  const { probeStore } = await import('../store/open.ts');
  const probed = await probeStore({
    store,
    direct: direct === undefined ? null : parseSetting('SETTLED_STORE_DIRECT', direct, SETTINGS.storeDirect.parse),
    trustsStorage: isGiven(others, 'SETTLED_STORE_DURABILITY'),
    clock: systemClock,
    newId: randomUUID,
    signal,
  }).catch((fault: unknown) => {
    if (!(fault instanceof Fault) || fault.code === 'store_stopped') throw fault;
    const code = fault.code === 'store_unreachable' ? 'answer_unreachable' : 'answer_refused';
    throw new AnswerRefused('store', fault.message, code);
  });
  const named = (verdict: string) =>
    probed.filter((one) => one.verdict === verdict).map(({ capability, found }) => `${capability} (${found})`);
  const [missing, degraded] = [named('missing'), named('degraded')];
  if (missing.length > 0) {
    throw new AnswerRefused('store', `settled cannot use ${store.name}, which lacks: ${missing.join('; ')}.`);
  }
  const worse = degraded.length === 0 ? '' : `; degraded: ${degraded.join('; ')}`;
  const isForeign =
    settingText(others, 'SETTLED_STORE') !== text && store.engine === 'sqlite' && existsSync(store.path);
  const kept = isForeign
    ? '. It exists, and settled continues with its orders: if they are of a trial, name another file'
    : '';
  const detail = `${store.name} has all ${probed.length} things that settled needs of it${worse}${kept}`;
  return { answer: 'store', status: degraded.length === 0 && !isForeign ? 'ok' : 'warning', detail };
}

/**
 * Checks the shop's address as the start does, and whether its name leads to this network.
 *
 * @param mayBePrivate asks once, and only if it is private
 */
export async function checkShop(shopUrl: string, mayBePrivate: () => Promise<boolean>): Promise<CheckNote> {
  const url = parseAnswer('shop-url', "The shop's address", shopUrl, SETTINGS.shopUrl.parse) as string;
  const { hostname, origin } = new URL(url);
  const addresses = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => null);
  if (addresses === null) {
    throw new AnswerRefused(
      'shop-url',
      `No address is known for ${hostname}: correct the name, or answer without one.`,
    );
  }
  const refusal =
    startRefusal(url) ?? (addresses.some(({ address }) => isPrivateIp(address)) ? leadsHome(origin) : null);
  if (refusal !== null && !(await mayBePrivate())) throw new AnswerRefused('shop-url', refusal);
  try {
    const { status } = await fetch(url, { method: 'HEAD', redirect: 'manual', signal: AbortSignal.timeout(ANSWER_MS) });
    return { answer: 'shop-url', status: 'ok', detail: `${origin} answers (${status}); nothing was sent to it` };
  } catch (error) {
    const detail = `${origin} does not answer yet (${causeOf(error)}): settled retries notices for 7 days`;
    return { answer: 'shop-url', status: 'warning', detail };
  }
}

/** Why a start would refuse the address, in its own words. */
function startRefusal(url: string): string | null {
  try {
    readConfig({ SETTLED_SHOP_URL: url, SETTLED_SHOP_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}` });
    return null;
  } catch (fault) {
    return (fault as Error).message.split('\n  - ')[1] ?? (fault as Error).message;
  }
}

function leadsHome(origin: string): string {
  return `${origin} leads to an address of this network. If the shop is meant to be there, give --shop-allow-private`;
}
