import { afterAll } from 'vitest';
import { AT_ONCE, IN_TURN, storeContract } from '../contract.ts';
import { closeUnused, contractStore } from './contract_store.ts';

afterAll(closeUnused);

storeContract('PostgreSQL', contractStore, { ...IN_TURN, ...AT_ONCE });
