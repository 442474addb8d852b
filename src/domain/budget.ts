/** What a request to the service's API is for. Each class may fill the budget up to its own cap. */
export const REQUEST_CLASSES = ['create', 'confirm', 'hint', 'janitor'] as const;
export type RequestClass = (typeof REQUEST_CLASSES)[number];

/** The service counts requests in sliding windows of a minute (spec §8); the second is for clocks that round and drift. */
export const BUDGET_WINDOW_MS = 61_000;

/** Shares of all slots: a customer at checkout never waits behind the janitor. */
const SHARES: Readonly<Record<RequestClass, number>> = { create: 1, confirm: 0.8, hint: 0.6, janitor: 0.4 };

/** How many of `slots` may be in use for a request of this class to be admitted below. */
export function slotsFor(requestClass: RequestClass, slots: number): number {
  return Math.max(1, Math.floor(slots * SHARES[requestClass]));
}

/** A slot, or when to ask for one again. The slot's number also numbers what is read with it. */
export type BudgetTaken =
  | { readonly outcome: 'taken'; readonly number: number }
  | { readonly outcome: 'spent'; readonly retryAtMs: number };

/** What an answer says of the limit: requests in the window, and how many of them are left (spec §8). */
export type RateSeen = { readonly limit: number; readonly remaining: number };

/** Nothing is sent until then; `spares` names the class that may try all the same. */
export type ApiPause = { readonly untilMs: number; readonly spares: 'create' | null };

/** How the service takes our key: `unknown` where the answer does not show it. */
export type ApiStanding = 'well' | 'api_key_refused' | 'merchant_inactive' | 'unknown';
