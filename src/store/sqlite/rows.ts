/** Lists go from the newest key down; this is the one above them all. */
export const KEY_MAX = Number.MAX_SAFE_INTEGER;

/** Attention rows with the order that each is about. */
export const ATTENTION = `SELECT a.key, a.kind, a.subject, o.reference, a.detail, a.count,
  a.opened_at_ms AS openedAtMs, a.last_at_ms AS lastAtMs FROM attention a LEFT JOIN orders o ON o.key = a.order_key`;
