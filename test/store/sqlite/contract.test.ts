import { IN_TURN, storeContract } from '../contract.ts';
import { contractStore } from './contract_store.ts';
import { openWithoutThreads } from './direct.ts';

storeContract('SQLite', () => contractStore(async (path, nowMs) => openWithoutThreads(path, nowMs)), IN_TURN);
