-- expands
-- The customer as the shop named them when it opened the order. Both null: dropped.
CREATE TABLE order_customer (
  order_key  INTEGER PRIMARY KEY REFERENCES orders (key) ON DELETE CASCADE,
  name       TEXT,
  email      TEXT,
  -- As in `payment`: since when they are kept, here or in a notice, and the notice up to which none names them.
  since_ms   INTEGER,
  dropped_to INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX order_customer_personal ON order_customer (since_ms) WHERE since_ms IS NOT NULL;

-- Words by which people find an order, without case and accents: of its reference, its title and the shop's customer.
-- Written when the order opens. `personal`: of the customer alone, and dropped with it.
CREATE TABLE order_word (
  order_key INTEGER NOT NULL REFERENCES orders (key) ON DELETE CASCADE,
  word      TEXT    NOT NULL,
  personal  INTEGER NOT NULL CHECK (personal IN (0, 1)),
  PRIMARY KEY (order_key, word)
) STRICT, WITHOUT ROWID;
-- In groups of orders that came together, like the names of payments.
CREATE INDEX order_word_by_word ON order_word (order_key >> 10, word);
