import { titleOf } from '../api/problem.ts';
import { html } from '../http/app.ts';
import type { PageParts } from './layout.ts';
import type { View } from './view.ts';

/** What each operation did, by its id. An id that a page does not know says nothing. */
const WAS_DONE: Readonly<Record<string, string>> = {
  resolveOrder: 'The order was decided.',
  checkOrder: 'settled asked the service about the order, and settled what it said.',
  cancelOrder: 'The order was cancelled.',
  adoptLink: 'The order has its link.',
  endAttention: 'The matter has ended.',
  replayEvent: 'settled settles the event again now.',
  resendNotice: 'settled sends the notice again now.',
  addToken: 'The token was made.',
  revokeToken: 'The token was revoked.',
  endSession: 'The session has ended.',
  reconcile: 'settled asks the service now.',
};

/** Says what the last action did, or why it did nothing; null if there was none. `done`: the id of an operation. */
export function actionNotice(
  { refused = null }: Pick<View, 'refused'>,
  done: unknown,
): NonNullable<PageParts['notice']> | null {
  if (refused !== null) {
    const { status, detail } = refused;
    return { text: html`<strong>${titleOf(status)}.</strong> ${detail}`, isProblem: true };
  }
  if (typeof done !== 'string' || !Object.hasOwn(WAS_DONE, done)) return null;
  return { text: WAS_DONE[done] as string };
}
