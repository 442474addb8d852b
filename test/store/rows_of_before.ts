import { expect } from 'vitest';
import { explainAttention } from '../../src/explain/attention_sentences.ts';
import type { Store } from '../../src/store/contract.ts';

const REFERENCE = 'order-1';
const FLAW = 'it has 3 bytes';

/**
 * What a database holds that the release before 0012 wrote: sentences in place of what they say. The SQL suits both
 * engines; `bytes` is a literal of some.
 */
export function rowsOfBefore(bytes: string): string {
  return `
    INSERT INTO orders (key, reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
      VALUES (901, '${REFERENCE}', 100, 'BRL', 'awaiting_payment', 1, 1);
    INSERT INTO link (key, order_key, token, sealed_secret, secrets_key_id, secret_fingerprint, created_at_ms)
      VALUES (902, 901, 'token-1', ${bytes}, 'key-1', ${bytes}, 1);
    INSERT INTO opening (link_key, request, status, due_at_ms, ended_at_ms, fault_code, fault_message)
      VALUES (902, '{}', 'taken', 1, 1, 'service_conflict',
        'The service has a link pl 9 of this reference that settled did not make.');
    INSERT INTO history (order_key, at_ms, what, cause_kind)
      VALUES (901, 1, 'the service named a signing secret that cannot be used: ${FLAW}', 'reading');
    INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms)
      VALUES ('event_not_understood', '${REFERENCE}', 901, 'Look. Then: settled attention end ID --reason TEXT', 1, 1);
    INSERT INTO attention (kind, subject, order_key, detail, opened_at_ms, last_at_ms, ended_at_ms)
      VALUES ('event_dead', '7', 901, 'It was dead. A person ended this: seen to', 1, 1, 2);`;
}

/** What a person reads of those rows is what they read before. */
export async function expectReadable(store: Pick<Store, 'timeline'>): Promise<void> {
  const found = await store.timeline(REFERENCE);
  expect(found?.order).toMatchObject({ details: [], title: null, metadata: null });
  expect(found).toMatchObject({ secretFlaw: FLAW, opening: { status: 'taken', foreignId: 'pl 9', needsId: false } });
  const [matter, ...others] = found?.attention ?? [];
  if (matter === undefined) throw new Error('the matter is gone');
  expect(others).toEqual([]);
  expect(matter.params).toBeNull();
  const { key } = matter;
  expect(explainAttention(matter, { key, canAsk: true })).toBe(
    `Look. Then: settled attention end ${key} --reason TEXT`,
  );
}
