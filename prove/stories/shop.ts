import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { type SeenNotice, SHOP_SECRET, startShop } from '../harness/shop.ts';
import { lookFor } from '../harness/wait.ts';
import { type ShopRecord, TOO_LATE } from './examiner.ts';

/** The shop of a story: it opens and cancels orders, and takes signed notices, each in its own way. */

export type ShopWays = {
  /** A type of notice that it does not know, and answers 400. */
  refuses: string | null;
  /** It takes one notice in so many, and its answer is lost. 0: none. */
  losesEvery: number;
};

export type ShopOutage = '503' | 'refused' | 'hang' | 'html-502';

const KEY = Buffer.from(SHOP_SECRET.slice('whsec_'.length), 'base64');
const SHOP_TOKEN = 'shop-token-of-the-stories';
const AGAIN_MS = 250;
const OPEN_MS_MAX = 60_000;
const ANSWER_MS_MAX = 15_000;
const HANG_MS = 1_500;

export class Shop {
  readonly record: ShopRecord = { told: [], opened: new Map(), reopened: new Map(), cancelled: new Set() };
  readonly broken: string[] = [];
  outage: ShopOutage | null = null;
  onBusy: () => void = () => {};
  stop = () => {};
  #settled = '';
  #callback: Record<string, string> = {};
  readonly #ways: ShopWays;

  constructor(ways: ShopWays) {
    this.#ways = ways;
  }

  async start(): Promise<void> {
    const { environment, close } = await startShop((...notice) => this.#take(...notice));
    this.#callback = environment;
    this.stop = close;
  }

  /** What settled must be started with, and where its private API then is. */
  environment(operator: string): Record<string, string> {
    this.#settled = `http://${operator}`;
    return { SETTLED_SHOP_TOKEN: SHOP_TOKEN, ...this.#callback };
  }

  /** Opens an order as integrate.md says: again on 202, 503 and no answer. True if the customer can pay. */
  async open(order: { reference: string; amount: string; expiresAt?: string }): Promise<boolean> {
    const answered = await this.#untilAnswered(async () => {
      const answer = await this.#call('/v1/orders', { ...order, title: 'An order' });
      if (answer === null) return null;
      const isTooLate = answer.status === 422 && Date.parse(order.expiresAt ?? '') < Date.now();
      this.record.opened.set(order.reference, isTooLate ? { ...answer, code: TOO_LATE } : answer);
      return answer.status === 202 ? null : answer;
    });
    return answered === 200 || answered === 201;
  }

  /** Opens an order once more, as a shop does when the customer comes back. */
  async openAgain(order: { reference: string; amount: string; expiresAt?: string }): Promise<void> {
    const answer = await this.#call('/v1/orders', { ...order, title: 'An order' });
    if (answer !== null) this.record.reopened.set(order.reference, answer);
  }

  async cancel(reference: string): Promise<boolean> {
    const answered = await this.#untilAnswered(() => this.#call(`/v1/orders/${reference}/cancel`, {}));
    if (answered === 200) this.record.cancelled.add(reference);
    return answered === 200;
  }

  /** Repeats a call until it is answered for good, and returns the status. */
  async #untilAnswered(call: () => Promise<{ status: number } | null>): Promise<number | null> {
    return lookFor(
      OPEN_MS_MAX,
      async () => {
        const answer = await call();
        return answer !== null && answer.status < 500 && answer.status;
      },
      AGAIN_MS,
    );
  }

  async #call(path: string, body: object): Promise<{ status: number; code: string | null } | null> {
    try {
      const answer = await fetch(`${this.#settled}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${SHOP_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      });
      const { title } = (await answer.json()) as { title?: string };
      return { status: answer.status, code: title ?? null };
    } catch {
      return null;
    }
  }

  async #take(notice: SeenNotice, body: string, headers: IncomingHttpHeaders): Promise<number | null> {
    this.onBusy();
    if (this.outage === 'refused') return null;
    if (this.outage === 'hang') return after(HANG_MS, null);
    if (this.outage !== null) return this.outage === '503' ? 503 : 502;
    if (!isGenuine(headers, body)) this.broken.push('a notice does not carry the shop’s signature');
    const { refuses, losesEvery } = this.#ways;
    const { told } = this.record;
    const isLost = notice.type !== refuses && losesEvery > 0 && told.length % losesEvery === 0;
    const answered = isLost ? null : notice.type === refuses ? 400 : 200;
    const { amount, currency } = JSON.parse(body).data.order.payment ?? { amount: null, currency: null };
    const cents = amount === null ? null : Math.round(Number(amount) * 100);
    told.push({ ...notice, atMs: Date.now(), answered, cents, currency });
    return answered;
  }
}

/** Standard Webhooks. */
function isGenuine(headers: IncomingHttpHeaders, body: string): boolean {
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.`;
  const right = createHmac('sha256', KEY).update(signed).update(body).digest();
  return String(headers['webhook-signature'])
    .split(' ')
    .map((one) => Buffer.from(one.replace(/^v1,/, ''), 'base64'))
    .some((given) => given.length === right.length && timingSafeEqual(given, right));
}
