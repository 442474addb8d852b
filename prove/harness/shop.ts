import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { listen } from '../../test/support/network.ts';
import type { Serving } from './settled.ts';

/** The shop's side: the callback that takes notices, and the feed that has them all. */

/** A notice as the shop or a reader of the feed got it. */
export type SeenNotice = { id: string; reference: string; type: string; version: number };

type NoticeBody = {
  type: string;
  data: { order: { reference: string; state: string; version: number }; version: number };
};

function seen(id: string, { type, data: { order, version } }: NoticeBody): SeenNotice {
  return { id, reference: order.reference, type, version };
}

/**
 * What was told under more than one id: a settlement that was made twice is told twice.
 *
 * @param whatOf what may have one id only
 */
export function toldUnderTwoIds<T extends SeenNotice>(told: readonly T[], whatOf: (one: T) => string): string[] {
  return [...Map.groupBy(told, whatOf)].flatMap(([what, all]) => {
    const ids = new Set(all.map(({ id }) => id));
    return ids.size > 1 ? [`${what} was told as ${[...ids].join(', ')}`] : [];
  });
}

export function kindOf({ reference, type }: Pick<SeenNotice, 'reference' | 'type'>): string {
  return `${type} of ${reference}`;
}

export function versionOf(one: SeenNotice): string {
  return `${kindOf(one)}, version ${one.version}`;
}

export const SHOP_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** What settled must know of a shop at this address. */
export function shopEnvironment(url: string, secret = SHOP_SECRET): Record<string, string> {
  return { SETTLED_SHOP_URL: url, SETTLED_SHOP_SECRET: secret, SETTLED_SHOP_ALLOW_PRIVATE: 'true' };
}

/** Answers a notice with a status; null for no answer at all. */
type Taking = (
  notice: SeenNotice,
  body: string,
  headers: IncomingHttpHeaders,
) => number | null | Promise<number | null>;

export type Shop = { environment: Record<string, string>; told: SeenNotice[]; close(): void };

/** The shop's callback, which notes every notice. `take`: how it answers, instead of taking each; 503 if it throws. */
export async function startShop(take: Taking = () => 204): Promise<Shop> {
  const told: SeenNotice[] = [];
  const answerTo = async (request: IncomingMessage): Promise<number | null> => {
    const body = Buffer.concat(await request.toArray()).toString();
    const notice = seen(String(request.headers['webhook-id']), JSON.parse(body));
    told.push(notice);
    return Promise.resolve(take(notice, body, request.headers)).catch(() => 503);
  };
  const server = createServer(async (request, response) => {
    // There is none if settled was killed while it told.
    const status = await answerTo(request).catch(() => null);
    if (status === null) response.destroy();
    else response.writeHead(status).end(status < 300 ? '' : '<p>One moment</p>');
  });
  const { url, close } = await listen(server);
  return { environment: shopEnvironment(`${url}/settled`), told, close };
}

/** A page of the feed after another. `data`: what the notices say. */
type FeedPage = { cursor: string; notices: (NoticeBody & { id: string; cursor: string })[] };

/** Reads the feed from a cursor on to its end, at one replica after the other if `ask` chooses one anew. */
export async function readFeed(ask: () => Serving | null, after: string | null = null): Promise<FeedPage> {
  const read: FeedPage = { cursor: after ?? '', notices: [] };
  for (let more = true; more; ) {
    const from = read.cursor === '' ? '' : `&after=${read.cursor}`;
    const answer = await ask()?.ask(`/v1/feed?limit=1000${from}`);
    if (answer?.status !== 200) throw new Error(`the feed answered ${answer?.status}`);
    read.notices.push(...answer.body.notices);
    read.cursor = answer.body.cursor;
    more = answer.body.more;
  }
  return read;
}

/** The same, as a shop that is told. */
export async function seenInFeed(ask: () => Serving | null): Promise<SeenNotice[]> {
  return (await readFeed(ask)).notices.map(({ id, ...notice }) => seen(id, notice));
}
