-- expands
-- Money of a payment by which people look for its order, if it was not what the ledger or the order had when it came: what the
-- service reported and settled did not count, or counted otherwise, and what the customer pays in all. `payment_key`: as in the
-- ledger.
CREATE TABLE reported_payment (
  order_key    INTEGER NOT NULL REFERENCES orders (key),
  payment_key  TEXT    NOT NULL,
  currency     TEXT    NOT NULL,
  amount_minor INTEGER NOT NULL,
  PRIMARY KEY (order_key, payment_key, currency, amount_minor)
) STRICT, WITHOUT ROWID;
CREATE INDEX reported_payment_by_id ON reported_payment (payment_key);
CREATE INDEX reported_payment_by_money ON reported_payment (amount_minor, order_key);
