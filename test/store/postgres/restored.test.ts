import { COPIED_AT_MS, restoreContract } from '../contract/asking-restore.ts';
import { worldOf } from '../contract/world.ts';
import { runIn } from './contract_store.ts';
import { newDatabase, openTestPostgres } from './opening.ts';

restoreContract(async () => {
  const url = await newDatabase();
  const { store } = await openTestPostgres(url);
  await runIn(url, `UPDATE instance SET restored_from_ms = ${COPIED_AT_MS}`);
  return { world: worldOf(store), dispose: () => store.close() };
});
