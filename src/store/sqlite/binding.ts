import type { Database } from 'better-sqlite3';
import { attentionVerbs } from './matters.ts';

type UnboundLink = { linkKey: number; opened: 0 | 1 };

/**
 * Gives a link that has none the id that the service says; false where another link has it. Where settled opens the link
 * itself, its opening goes on at once: the link is there, and only its details are missing.
 */
export function idBinder(db: Database): (link: UnboundLink, linkId: string, nowMs: number) => boolean {
  const taken = db.prepare('SELECT 1 FROM link WHERE link_id = ?').pluck();
  const bind = db.prepare('UPDATE link SET link_id = ? WHERE key = ? AND link_id IS NULL');
  const hurry = db.prepare(
    `UPDATE opening SET status = 'pending', due_at_ms = @nowMs, ended_at_ms = NULL
     WHERE link_key = @linkKey AND status IN ('pending', 'taken')`,
  );
  const referenceOf = db
    .prepare('SELECT o.reference FROM link l JOIN orders o ON o.key = l.order_key WHERE l.key = ?')
    .pluck();
  const attention = attentionVerbs(db);
  return ({ linkKey, opened }, linkId, nowMs) => {
    if (taken.get(linkId) !== undefined) return false;
    bind.run(linkId, linkKey);
    attention.end('link_not_known', linkId, nowMs);
    if (opened === 1 && hurry.run({ linkKey, nowMs }).changes === 1) {
      attention.end('reference_taken', referenceOf.get(linkKey) as string, nowMs);
    }
    return true;
  };
}
