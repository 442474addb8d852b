import type pg from 'pg';
import { type SeenNotice, startShop as startTakingShop, versionOf } from '../harness/shop.ts';

/** The type of notice that the shop may refuse. */
const INFORMS = 'order.payment_pending';

/** When a notice arrives, its own row and the money must both be committed. */
const COMMITTED = `SELECT n.body = $3 AS "isSame",
    n.type = '${INFORMS}' OR EXISTS (SELECT FROM settlement s WHERE s.order_key = n.order_key) AS "isPaid",
    to_jsonb(n) ->> 'superseded' IS NOT DISTINCT FROM 'true' AS "isSuperseded"
  FROM outbox n WHERE n.key = $1 AND n.notice_id = $2`;

/** The shop's callback. It records every notice, and checks in the database that its content is committed. */
export type Shop = {
  readonly environment: Record<string, string>;
  /** Every notice that arrived. */
  readonly told: readonly SeenNotice[];
  /** How often each notice was accepted, by its id. */
  readonly taken: ReadonlyMap<string, number>;
  /** Whether it refuses notices of the type that informs of a pending payment. */
  refuses: boolean;
  /** How often each notice was refused, by its id, and how often after a later one of its order was accepted. */
  readonly refused: ReadonlyMap<string, { times: number; late: number }>;
  /** What was wrong. */
  readonly broken: readonly string[];
  close(): void;
};

export async function startShop(database: pg.Pool): Promise<Shop> {
  const taken = new Map<string, number>();
  const refused = new Map<string, { times: number; late: number }>();
  /** The last version that was accepted, by order. */
  const versions = new Map<string, number>();
  const broken: string[] = [];

  /** Throws if the database does not answer: then it comes again. */
  const { environment, told, close } = await startTakingShop(async (notice, body) => {
    const fault = await faultOf(database, notice.id, body);
    if (fault !== null) broken.push(fault);
    return note(notice);
  });

  /** Returns the status of the answer. */
  function note(notice: SeenNotice): number {
    const { id, type, reference, version } = notice;
    const latest = versions.get(reference) ?? 0;
    if (shop.refuses && type === INFORMS) {
      const { times, late } = refused.get(id) ?? { times: 0, late: 0 };
      refused.set(id, { times: times + 1, late: late + (latest > version ? 1 : 0) });
      return 400;
    }
    if (!taken.has(id) && version < latest) broken.push(`${versionOf(notice)} was sent after version ${latest}`);
    versions.set(reference, Math.max(version, latest));
    taken.set(id, (taken.get(id) ?? 0) + 1);
    return 204;
  }

  const shop: Shop = { environment, told, taken, refuses: false, refused, broken, close };
  return shop;
}

/** What is wrong with a notice that has just arrived; null if nothing is. Throws if the database does not answer. */
async function faultOf(database: pg.Pool, id: string, body: string): Promise<string | null> {
  const [, key, random] = /^msg_(\d+)_(.+)$/.exec(id) ?? [];
  if (key === undefined) return `a notice has the id ${id}`;
  const { rows } = await database.query<{ isSame: boolean; isPaid: boolean; isSuperseded: boolean }>(COMMITTED, [
    key,
    random,
    body,
  ]);
  const [row] = rows;
  if (row === undefined) return `${id} was sent before it was committed`;
  if (!row.isSame) return `${id} was sent with another text than is committed`;
  if (row.isSuperseded) return `${id} was sent after a later one had superseded it`;
  return row.isPaid ? null : `${id} was sent before its order was settled`;
}

/** How often the shop refused notices, in one line. */
export function refusals({ refused }: Shop): string {
  const attempts = [...refused.values()];
  const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0);
  const late = attempts.filter((one) => one.late > 0).map((one) => one.late);
  return `${refused.size} in ${sum(attempts.map(({ times }) => times))} attempts; ${late.length} of them ${sum(late)} times after a later one was taken, at most ${Math.max(0, ...late)} times each`;
}
