/** The life of inbox and outbox rows: pending → leased → done | dead; leased → pending on retry or when the lease lapses. */
export const ROW_STATUSES = ['pending', 'leased', 'done', 'dead'] as const;
export type RowStatus = (typeof ROW_STATUSES)[number];
