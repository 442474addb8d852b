import type { Database } from 'better-sqlite3';
import { learnedBy } from '../../domain/decision.ts';
import { bareFact } from '../../domain/fact.ts';
import { isOpen } from '../../domain/order.ts';
import { decide } from '../../domain/settlement.ts';
import type { Checks } from '../asking.ts';
import type { LoadedOrder } from '../orders.ts';
import type { Links, Orders, Registered, Registration, SealedSecret } from '../store.ts';
import { canceller } from './cancel.ts';
import { decisionWriter } from './decisions.ts';
import { NEXT_LINK_KEY, orderInserter } from './intents.ts';
import { attentionEnder, attentionVerbs, historyNotes, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { watcher } from './schedule.ts';
import type { Synchronous } from './synchronous.ts';

type LinkRow = {
  key: number;
  link_id: string | null;
  token: string;
  secrets_key_id: string;
  secret_fingerprint: Buffer;
  opened: 0 | 1;
};

export function linkVerbs(db: Database): Synchronous<Links> {
  const orders = orderLoader(db);
  const newestLink = db.prepare(
    `SELECT l.key, l.link_id, l.token, l.secrets_key_id, l.secret_fingerprint, l.opened FROM link l
     WHERE l.order_key = ? ORDER BY l.key DESC LIMIT 1`,
  );
  const ownerOf = db.prepare('SELECT order_key FROM link WHERE link_id = ?').pluck();
  const create = linkCreator(db);
  const change = linkChanger(db);

  return {
    registerLink: (registration: Registration): Registered => {
      const { reference, amount, linkId } = registration;
      const loaded = orders.byReference(reference);
      const owner = linkId === null ? undefined : (ownerOf.get(linkId) as number | undefined);
      const isTaken = owner !== undefined && owner !== loaded?.orderKey;
      if (loaded === null) {
        if (isTaken) return takenBy(owner);
        const linkKey = create(registration);
        const { order } = orders.byReference(reference) as LoadedOrder;
        return { outcome: 'created', order, token: registration.token, linkKey };
      }
      const { order, orderKey } = loaded;
      const link = newestLink.get(orderKey) as LinkRow;
      // The link of an order that settled opens is made by settled, with a secret of its own.
      if (link.opened === 1) return { outcome: 'opened_by_settled', order };
      if (order.amount.amountMinor !== amount.amountMinor || order.amount.currency !== amount.currency) {
        return { outcome: 'reference_conflict', order };
      }
      const correctsId = linkId !== null && link.link_id !== null && link.link_id !== linkId;
      // An open order has no ledger: no money was counted by the id that it has.
      if (correctsId && !isOpen(order.state)) return { outcome: 'link_id_conflict', order };
      if (isTaken) return takenBy(owner);
      const correctsSecret = registration.secret !== null && !isSecretOf(link, registration.secret);
      const corrects = correctsId || correctsSecret;
      if (corrects && !registration.mayCorrect) return { outcome: 'correction_forbidden', order };
      const outcome = change(orderKey, link, registration, { correctsId, correctsSecret });
      const after = orders.byReference(reference) as LoadedOrder;
      return { outcome, order: after.order, token: link.token, linkKey: link.key };
    },
  };

  function takenBy(owner: number): Registered {
    return { outcome: 'link_id_taken', order: orders.byKey(owner).order };
  }
}

/** Fingerprints can be compared under one key only; of a secret whose key is not known nobody can say. */
function isSecretOf(link: LinkRow, { olderFingerprints = [], ...current }: SealedSecret): boolean {
  return [current, ...olderFingerprints].some(
    ({ keyId, fingerprint }) => keyId === link.secrets_key_id && link.secret_fingerprint.equals(fingerprint),
  );
}

function linkCreator(db: Database): (registration: Registration) => number {
  const insertOrder = orderInserter(db);
  const insertLink = db.prepare(
    `INSERT INTO link (key, order_key, link_id, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
     VALUES (${NEXT_LINK_KEY}, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const note = historyNotes(db);
  const checks = linkChecks(db);
  const watch = watcher(db);
  const attention = attentionVerbs(db);
  return ({ reference, amount, linkId, token, secret, freshSecret, atMs }) => {
    const orderKey = insertOrder(reference, amount, atMs);
    const { sealed, keyId, fingerprint }: SealedSecret = secret ?? freshSecret;
    const inserted = insertLink.run(orderKey, linkId, token, sealed, keyId, fingerprint, atMs);
    note(orderKey, atMs, linkId === null ? 'link reserved' : `link ${linkId} registered`);
    const linkKey = Number(inserted.lastInsertRowid);
    if (linkId !== null) attention.end('link_not_known', linkId, atMs);
    checks.request({ linkKey, reason: 'registered', atMs });
    watch.reschedule(linkKey, atMs);
    return linkKey;
  };
}

type Change = 'same' | 'bound' | 'corrected';
type Corrections = { correctsId: boolean; correctsSecret: boolean };

function linkChanger(
  db: Database,
): (orderKey: number, link: LinkRow, registration: Registration, corrections: Corrections) => Change {
  const bind = db.prepare('UPDATE link SET link_id = ? WHERE key = ?');
  const correctId = db.prepare(
    'UPDATE link SET link_id = ?, url = NULL, short_url = NULL, status = NULL, expires_at_ms = NULL WHERE key = ?',
  );
  const correctSecret = db.prepare(
    'UPDATE link SET sealed_secret = ?, secrets_key_id = ?, secret_fingerprint = ? WHERE key = ?',
  );
  const note = historyNotes(db);
  const checks = linkChecks(db);
  const watch = watcher(db);
  const attention = attentionVerbs(db);
  return (orderKey, link, { linkId, secret, atMs }, { correctsId, correctsSecret }) => {
    const binds = linkId !== null && link.link_id === null;
    if (binds) {
      bind.run(linkId, link.key);
      note(orderKey, atMs, `link ${linkId} bound`);
    }
    if (correctsId) {
      correctId.run(linkId, link.key);
      watch.reschedule(link.key, atMs);
      note(orderKey, atMs, `link id corrected from ${link.link_id} to ${linkId}`);
    }
    if (correctsSecret && secret !== null) {
      correctSecret.run(secret.sealed, secret.keyId, secret.fingerprint, link.key);
      note(orderKey, atMs, 'signing secret corrected');
    }
    if (linkId !== null) attention.end('link_not_known', linkId, atMs);
    checks.request({ linkKey: link.key, reason: 'registered', atMs });
    return correctsId || correctsSecret ? 'corrected' : binds ? 'bound' : 'same';
  };
}

export function orderVerbs(
  db: Database,
  newId: () => string,
): Synchronous<Orders & Pick<Checks, 'cancelOrder'>> {
  const orders = orderLoader(db);
  const write = decisionWriter(db, newId);
  const byPerson = { by: 'person' } as const;
  const policy = { asks: 'never', quoteIsDoubtful: false } as const;
  return {
    resolveOrder: ({ reference, decision, reason, atMs }) => {
      const loaded = orders.byReference(reference);
      if (loaded === null) return null;
      const made = decide(loaded.order, bareFact(decision, byPerson), policy);
      const order = write(loaded, made, { kind: 'person', id: reason }, atMs);
      const outcome = made.outcome as 'applied' | 'already_applied' | 'ignored';
      return { outcome, rule: made.rule, order, learnedBy: learnedBy(made) };
    },
    cancelOrder: canceller(db, newId),
    endAttention: attentionEnder(db),
  };
}
