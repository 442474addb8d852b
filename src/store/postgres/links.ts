import type { Checks } from '../asking.ts';
import type { Links, Orders } from '../store.ts';
import { endAttention } from './matters.ts';
import type { InTransaction } from './transaction.ts';
export const linkVerbs = {} as InTransaction<Links>;
export const orderVerbs = { endAttention } as InTransaction<Orders & Pick<Checks, 'cancelOrder'>>;
