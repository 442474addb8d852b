import type { Delivery, Intake, SealedCredentials } from '../contract_inbox.ts';
import { type InTransaction, statement, type Transaction, type Work } from '../transaction.ts';
import { recordHint, recordOne, recordRejection, type SameId } from '../verbs/intake.ts';
import { SEALED_CREDENTIALS } from '../verbs/secrets.ts';

const BY_TOKEN = statement(`${SEALED_CREDENTIALS} WHERE l.token = @token`);
const BY_LINK_ID = statement(`${SEALED_CREDENTIALS} WHERE l.link_id = @linkId`);
const BY_LINK_KEY = statement(`${SEALED_CREDENTIALS} WHERE l.key = @linkKey`);
const BY_REFERENCE = statement(`${SEALED_CREDENTIALS} WHERE o.reference = @reference ORDER BY l.key DESC LIMIT 1`);

const SAME_ID =
  'SELECT key, body_sha256 AS bodySha256, status FROM inbox WHERE link_key = @linkKey AND event_id = @eventId';
const FIND_FIRST = statement(`${SAME_ID} LIMIT 1`);
const FIND_SAME = statement(`${SAME_ID} AND body_sha256 = @bodySha256`);

function* findSameId(tx: Transaction, delivery: Delivery): Work<SameId[]> {
  const first = yield* tx.one<SameId>(FIND_FIRST, delivery);
  if (first === undefined || first.bodySha256.equals(delivery.bodySha256)) return first === undefined ? [] : [first];
  return [first, ...(yield* tx.all<SameId>(FIND_SAME, delivery))];
}

/** Verbs that a delivery's answer waits for. */
export const intakeVerbs: InTransaction<Intake> = {
  *findCredentials(tx, by) {
    const asked = 'token' in by ? BY_TOKEN : 'linkId' in by ? BY_LINK_ID : 'linkKey' in by ? BY_LINK_KEY : BY_REFERENCE;
    return (yield* tx.one<SealedCredentials>(asked, by)) ?? null;
  },
  *recordDelivery(tx, delivery) {
    return yield* recordOne(tx, delivery, findSameId);
  },
  recordHint,
  recordRejection,
};
