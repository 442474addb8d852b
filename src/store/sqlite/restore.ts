import type { Database } from 'better-sqlite3';
import { adoptCommand, restoredSentence, searchSubject, shellWord } from '../../domain/advice.ts';
import type { Checks, ListedLink } from '../asking.ts';
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
        const { createdAtMs } = item;
        // What the store did not know when the copy was made was made without it.
        if (createdAtMs !== null && createdAtMs < sinceMs) continue;
        const known = stateOf(item);
        if (known.isKnown) continue;
        if (tell(item.id, describe(item, known.otherId), nowMs)) told++;
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
      const detail =
        `${restoredSentence(restoredFromMs)} Settled cannot read that list: ${why}. Look at the links that the service's panel ` +
        'shows since then, and bring back those that are not in settled orders list: settled links reserve REFERENCE ' +
        '--amount AMOUNT, then settled links add REFERENCE --amount AMOUNT --id ID. Then end this matter.';
      tell(searchSubject(restoredFromMs), detail, nowMs);
    }) satisfies Verbs['noteNoList'],
  };
}

/** Raises a matter unless it was raised before: what a person has ended stays so. */
function onceTeller(db: Database): (subject: string, detail: string, atMs: number) => boolean {
  const told = db
    .prepare("SELECT 1 FROM attention WHERE kind = 'link_not_known' AND subject = ? LIMIT 1")
    .pluck();
  const attention = attentionVerbs(db);
  return (subject, detail, atMs) => {
    if (told.get(subject) !== undefined) return false;
    attention.raiseForNoOrder('link_not_known', { subject, detail, atMs });
    return true;
  };
}

type Known = { isKnown: boolean; otherId: string | null };

/** A link is known by its id, or by its reference where the order's link has no id so far. */
function knowledge(db: Database): (item: ListedLink) => Known {
  const byId = db.prepare('SELECT 1 FROM link WHERE link_id = ?').pluck();
  const byReference = db
    .prepare(
      `SELECT l.link_id FROM orders o JOIN link l ON l.order_key = o.key WHERE o.reference = ?
       ORDER BY l.key DESC LIMIT 1`,
    )
    .pluck();
  return ({ id, reference }) => {
    if (byId.get(id) !== undefined) return { isKnown: true, otherId: null };
    const otherId = byReference.get(reference) as string | null | undefined;
    return { isKnown: otherId === null, otherId: otherId ?? null };
  };
}

/** What a person does about a link that the store does not know: the shop may have made it without settled. */
function describe({ id, reference, money, createdAtMs }: ListedLink, otherId: string | null): string {
  const amount = money.amount === null ? 'AMOUNT' : shellWord(money.amount);
  const currency = money.currency === null ? '' : ` --currency ${shellWord(money.currency)}`;
  const order = reference === null ? 'REFERENCE' : shellWord(reference);
  const made = createdAtMs === null ? '' : `, made ${new Date(createdAtMs).toISOString()}`;
  const of = reference === null ? 'without a reference' : `of reference ${reference}`;
  const link = `The service lists link ${id} ${of}${made}, and this restored store does not know it.`;
  if (otherId !== null) {
    return `${link} Order ${order} has link ${otherId} here: look at both in the service's panel.`;
  }
  return (
    `${link} If it was opened through settled after the backup, bring it back: settled links reserve ${order} --amount ` +
    `${amount}${currency} && settled links add ${order} --amount ${amount}${currency} --id ${shellWord(id)}. Its signing ` +
    'secret is lost with the store, so its deliveries are refused and the service is asked about it instead. Where the shop ' +
    `has opened the order again since, and was answered reference_taken: ${adoptCommand(reference ?? 'REFERENCE', id)}. If ` +
    'the shop made the link without settled, end this matter.'
  );
}
