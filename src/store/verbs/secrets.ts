import { Fault } from '../../fault.ts';
import { statement } from '../statement.ts';
import type { Transaction, Work } from '../transaction.ts';

const HOLD_KEY = statement(
  `SELECT 1 FROM instance WHERE secrets_key_id = @keyId
     OR ' ' || secrets_key_others || ' ' LIKE '% ' || @keyId::text || ' %' FOR KEY SHARE`,
);

/**
 * Holds a key under which a secret is about to be stored: giving it up waits, and then sees the secret. Throws if it was
 * given up: a replica that starts later need not know it any more.
 */
export function* holdSecretsKey(tx: Transaction, keyId: string): Work<void> {
  if ((yield* tx.one(HOLD_KEY, { keyId })) !== undefined) return;
  throw new Fault(
    'transient',
    'secrets_key_wrong',
    `This replica would seal a secret under the key ${keyId}, which the other replicas have given up. Start it with their ` +
      'SETTLED_SECRETS_KEY.',
  );
}
