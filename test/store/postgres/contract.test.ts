import { AT_ONCE, IN_TURN, storeContract } from '../contract.ts';
import { contractStore } from './contract_store.ts';

storeContract('PostgreSQL', contractStore, [...IN_TURN, ...AT_ONCE]);
