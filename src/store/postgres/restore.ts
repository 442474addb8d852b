import { searchSubject } from '../../domain/advice.ts';
import type { Checks, ListedLink } from '../asking.ts';
import { isMadeSince, knowledgeOf, noListDetail, unknownLinkDetail } from '../restore.ts';
import { statement } from '../statement.ts';
import { attention } from './matters.ts';
import type { InTransaction, Transaction } from './transaction.ts';

type RestoreVerbs = InTransaction<Pick<Checks, 'endRestore' | 'noteNoList'>>;

const FROM = statement('SELECT restored_from_ms AS restoredFromMs FROM instance');

/** When the copy in the place of the database was made, while links made since are looked for. */
export async function restoredFrom(tx: Transaction): Promise<number | null> {
  return (await tx.one<{ restoredFromMs: number | null }>(FROM))?.restoredFromMs ?? null;
}

const KNOWN = statement(
  `SELECT EXISTS (SELECT 1 FROM link WHERE link_id = listed.id) AS isIdKnown, newest.key IS NOT NULL AS hasLink,
     newest.link_id AS newestId
   FROM unnest(@ids::text[], @references::text[]) WITH ORDINALITY AS listed (id, reference, n)
   LEFT JOIN LATERAL (
     SELECT l.key, l.link_id FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = listed.reference
     ORDER BY l.key DESC LIMIT 1) AS newest ON true
   ORDER BY listed.n`,
);

type KnownRow = { isIdKnown: boolean; hasLink: boolean; newestId: string | null };

/** Tells a person of links that the store does not know. Returns of how many he was told now. */
export async function tellOfUnknown(
  tx: Transaction,
  items: readonly ListedLink[],
  { sinceMs, nowMs }: { sinceMs: number; nowMs: number },
): Promise<number> {
  const made = items.filter((item) => isMadeSince(item, sinceMs));
  const rows = await tx.all<KnownRow>(KNOWN, {
    ids: made.map(({ id }) => id),
    references: made.map(({ reference }) => reference),
  });
  const told = await Promise.all(
    made.map((item, index) => {
      const { isIdKnown, hasLink, newestId } = rows[index] as KnownRow;
      const { isKnown, otherId } = knowledgeOf(isIdKnown, hasLink ? newestId : undefined);
      return isKnown ? 0 : tellOnce(tx, item.id, unknownLinkDetail(item, otherId), nowMs);
    }),
  );
  return told.reduce((sum, one) => sum + one, 0);
}

const TELL_ONCE = statement(
  `INSERT INTO attention (kind, subject, detail, opened_at_ms, last_at_ms)
   SELECT 'link_not_known', @subject, @detail, @atMs::bigint, @atMs::bigint
   WHERE NOT EXISTS (SELECT 1 FROM attention WHERE kind = 'link_not_known' AND subject = @subject)
   ON CONFLICT (kind, subject) WHERE ended_at_ms IS NULL DO NOTHING`,
);

/** Raises a matter unless it was raised before: what a person has ended stays so. Returns how many it raised. */
function tellOnce(tx: Transaction, subject: string, detail: string, atMs: number): Promise<number> {
  return tx.run(TELL_ONCE, { subject, detail, atMs });
}

const CLEAR = statement('UPDATE instance SET restored_from_ms = NULL WHERE restored_from_ms = @restoredFromMs');

const endRestore: RestoreVerbs['endRestore'] = async (tx, { nowMs }) => {
  const restoredFromMs = await restoredFrom(tx);
  if (restoredFromMs === null) return;
  tx.send(CLEAR, { restoredFromMs });
  attention.end(tx, 'link_not_known', searchSubject(restoredFromMs), nowMs);
};

const noteNoList: RestoreVerbs['noteNoList'] = async (tx, { why, nowMs }) => {
  const restoredFromMs = await restoredFrom(tx);
  if (restoredFromMs === null) return;
  await tellOnce(tx, searchSubject(restoredFromMs), noListDetail(restoredFromMs, why), nowMs);
};

export const restoreVerbs: RestoreVerbs = { endRestore, noteNoList };
