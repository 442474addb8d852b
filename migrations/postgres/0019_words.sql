-- expands
-- The customer as the shop named them when it opened the order. Both null: dropped.
CREATE TABLE order_customer (
  order_key  bigint PRIMARY KEY REFERENCES orders (key) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  name       text,
  email      text,
  -- As in `payment`: since when they are kept, here or in a notice, and the notice up to which none names them.
  since_ms   bigint,
  dropped_to bigint NOT NULL DEFAULT 0
);
CREATE INDEX order_customer_personal ON order_customer (since_ms) WHERE since_ms IS NOT NULL;

-- Words by which people find an order, without case and accents: of its reference, its title and the shop's customer.
-- Written when the order opens. `personal`: of the customer alone, and dropped with it.
CREATE TABLE order_word (
  order_key bigint  NOT NULL REFERENCES orders (key) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED,
  -- By bytes, so that the index finds all that begin with some letters.
  word      text    COLLATE "C" NOT NULL,
  personal  boolean NOT NULL,
  PRIMARY KEY (order_key, word)
);
-- In groups of orders that came together, like the names of payments.
CREATE INDEX order_word_by_word ON order_word ((order_key >> 10), word);
