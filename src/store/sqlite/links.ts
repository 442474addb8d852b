import type { Database } from 'better-sqlite3';
import { learnedBy } from '../../domain/decision.ts';
import { bareFact } from '../../domain/fact.ts';
import { decide } from '../../domain/settlement.ts';
import type { Checks } from '../asking.ts';
import {
  type Change,
  changedOutcome,
  changeNotes,
  compareRegistration,
  createdNote,
  type KnownLink,
} from '../links.ts';
import type { LoadedOrder } from '../orders.ts';
import type { Links, Orders, Registered, Registration, SealedSecret } from '../store.ts';
import { canceller } from './cancel.ts';
import { decisionWriter } from './decisions.ts';
import { NEXT_LINK_KEY, orderInserter } from './intents.ts';
import { attentionEnder, attentionVerbs, historyNotes, linkChecks } from './matters.ts';
import { orderLoader } from './orders.ts';
import { watcher } from './schedule.ts';
import type { Synchronous } from './synchronous.ts';

type LinkRow = Omit<KnownLink, 'opened'> & { opened: 0 | 1 };

export function linkVerbs(db: Database): Synchronous<Links> {
  const orders = orderLoader(db);
  const newestLink = db.prepare(
    `SELECT l.key AS linkKey, l.link_id AS linkId, l.token, l.secrets_key_id AS keyId,
       l.secret_fingerprint AS fingerprint, l.opened
     FROM link l WHERE l.order_key = ? ORDER BY l.key DESC LIMIT 1`,
  );
  const ownerOf = db.prepare('SELECT order_key FROM link WHERE link_id = ?').pluck();
  const create = linkCreator(db);
  const carryOut = linkChanger(db);

  return {
    registerLink: (registration: Registration): Registered => {
      const { reference, linkId } = registration;
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
      const { opened, ...row } = newestLink.get(orderKey) as LinkRow;
      const link = { ...row, opened: opened === 1 };
      const change = compareRegistration(loaded, link, registration, isTaken);
      if (change === 'link_id_taken') return takenBy(owner as number);
      if (typeof change === 'string') return { outcome: change, order };
      carryOut(orderKey, link, registration, change);
      const after = orders.byReference(reference) as LoadedOrder;
      const { token, linkKey } = link;
      return { outcome: changedOutcome(change), order: after.order, token, linkKey };
    },
  };

  function takenBy(owner: number): Registered {
    return { outcome: 'link_id_taken', order: orders.byKey(owner).order };
  }
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
  return (registration) => {
    const { reference, amount, linkId, token, secret, freshSecret, atMs } = registration;
    const orderKey = insertOrder(reference, amount, atMs);
    const { sealed, keyId, fingerprint }: SealedSecret = secret ?? freshSecret;
    const inserted = insertLink.run(orderKey, linkId, token, sealed, keyId, fingerprint, atMs);
    note(orderKey, atMs, createdNote(registration));
    const linkKey = Number(inserted.lastInsertRowid);
    if (linkId !== null) attention.end('link_not_known', linkId, atMs);
    checks.request({ linkKey, reason: 'registered', atMs });
    watch.reschedule(linkKey, atMs);
    return linkKey;
  };
}

function linkChanger(
  db: Database,
): (orderKey: number, link: KnownLink, registration: Registration, change: Change) => void {
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
  return (orderKey, link, registration, change) => {
    const { linkId, secret, atMs } = registration;
    const { linkKey } = link;
    if (change.binds) bind.run(linkId, linkKey);
    if (change.correctsId) {
      correctId.run(linkId, linkKey);
      watch.reschedule(linkKey, atMs);
    }
    if (change.correctsSecret && secret !== null) {
      correctSecret.run(secret.sealed, secret.keyId, secret.fingerprint, linkKey);
    }
    for (const what of changeNotes(change, link, registration)) note(orderKey, atMs, what);
    if (linkId !== null) attention.end('link_not_known', linkId, atMs);
    checks.request({ linkKey, reason: 'registered', atMs });
  };
}

export function orderVerbs(db: Database, newId: () => string): Synchronous<Orders & Pick<Checks, 'cancelOrder'>> {
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
