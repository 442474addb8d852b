import { AT_ONCE, storeContract } from '../contract.ts';
import { contractStore } from './contract_store.ts';
import { openInThreads } from './opening.ts';

storeContract(
  'SQLite, in its threads',
  () => contractStore(async (path) => (await openInThreads(path)).store),
  AT_ONCE,
);
