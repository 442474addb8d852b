import { AT_ONCE, storeContract } from '../contract.ts';
import { contractStore } from './contract_store.ts';
import { openTestStore } from './opening.ts';

storeContract(
  'SQLite, in its threads',
  () => contractStore(async (path) => (await openTestStore(path)).store),
  AT_ONCE,
);
