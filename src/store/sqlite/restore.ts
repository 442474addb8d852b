import type { Database } from 'better-sqlite3';
import { searchSubject } from '../../domain/advice.ts';
import type { Checks, ListedLink } from '../asking.ts';
import { isMadeSince, type Known, knowledgeOf, noListDetail, unknownLinkDetail } from '../restore.ts';
import { attentionVerbs } from './matters.ts';
import type { Synchronous } from './synchronous.ts';

type Verbs = Synchronous<Checks>;
type Unknown = { sinceMs: number; nowMs: number };

/** What is done while a copy in the place of the database may lack links that were made after it. */
export function restoreVerbs(db: Database) {
  const from = db.prepare('SELECT restored_from_ms FROM instance').pluck();
  const clear = db.prepare('UPDATE instance SET restored_from_ms = NULL');
  const stateOf = knowledge(db);
  const tell = onceTeller(db);
  const attention = attentionVerbs(db);
  const fromMs = () => from.get() as number | null;
  return {
    fromMs,
    /** Returns of how many links a person was told now. */
    tellOfUnknown: (items: readonly ListedLink[], { sinceMs, nowMs }: Unknown): number => {
      let told = 0;
      for (const item of items) {
        if (!isMadeSince(item, sinceMs)) continue;
        const known = stateOf(item);
        if (known.isKnown) continue;
        if (tell(item.id, unknownLinkDetail(item, known.otherId), nowMs)) told++;
      }
      return told;
    },
    endRestore: (({ nowMs }) => {
      const restoredFromMs = fromMs();
      if (restoredFromMs === null) return;
      clear.run();
      attention.end('link_not_known', searchSubject(restoredFromMs), nowMs);
    }) satisfies Verbs['endRestore'],
    noteNoList: (({ why, nowMs }) => {
      const restoredFromMs = fromMs();
      if (restoredFromMs === null) return;
      tell(searchSubject(restoredFromMs), noListDetail(restoredFromMs, why), nowMs);
    }) satisfies Verbs['noteNoList'],
  };
}

/** Raises a matter unless it was raised before: what a person has ended stays so. */
function onceTeller(db: Database): (subject: string, detail: string, atMs: number) => boolean {
  const told = db.prepare("SELECT 1 FROM attention WHERE kind = 'link_not_known' AND subject = ? LIMIT 1").pluck();
  const attention = attentionVerbs(db);
  return (subject, detail, atMs) => {
    if (told.get(subject) !== undefined) return false;
    attention.raiseForNoOrder('link_not_known', { subject, detail, atMs });
    return true;
  };
}

function knowledge(db: Database): (item: ListedLink) => Known {
  const byId = db.prepare('SELECT 1 FROM link WHERE link_id = ?').pluck();
  const byReference = db
    .prepare(
      `SELECT l.link_id FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = ?
       ORDER BY l.key DESC LIMIT 1`,
    )
    .pluck();
  return ({ id, reference }) => {
    if (byId.get(id) !== undefined) return knowledgeOf(true, null);
    return knowledgeOf(false, byReference.get(reference) as string | null | undefined);
  };
}
