-- What people look for in lists of orders. Each index is cheap for deliveries: most are of columns that no delivery changes.
CREATE INDEX orders_by_money ON orders (currency, amount_minor);
CREATE INDEX orders_flagged ON orders (flags) WHERE flags <> '';
CREATE INDEX link_by_url ON link (url) WHERE url IS NOT NULL;
CREATE INDEX link_by_short_url ON link (short_url) WHERE short_url IS NOT NULL;
CREATE INDEX settlement_by_time ON settlement (paid_at_ms);

-- Ids that the service makes are in no order: these indexes have them by groups of 256 rows that came together, so that a
-- delivery writes a page that is written anyhow.
CREATE INDEX inbox_by_event ON inbox (key >> 8, event_id);
CREATE INDEX ledger_by_payment ON ledger (order_key >> 8, payment_key);

-- Whether an entry is of the money that its order asks; null in rows of before. Those that are not are looked for by amount.
ALTER TABLE ledger ADD COLUMN is_asked INTEGER CHECK (is_asked IN (0, 1));
CREATE INDEX ledger_other_amount ON ledger (amount_minor, order_key) WHERE kind = 'captured' AND is_asked IS NOT TRUE;
