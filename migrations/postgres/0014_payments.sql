-- expands
-- What the service says of each payment beside its status and its money. `payment_key`: the payment's id, or `unnamed`, as in
-- the ledger; the payment may not be counted yet. Null: not said so far, or not read. `said_at_ms`: when the newest of it came.
CREATE TABLE payment (
  order_key         bigint  NOT NULL REFERENCES orders (key),
  payment_key       text    NOT NULL,
  method            text,
  installments      integer,
  total_brl_minor   bigint,
  customer_name     text,
  customer_email    text,
  -- The same without case and accents: the words by which a person searches. COLLATE "C": by bytes, so
  -- that the index finds all that begin with some letters.
  name_search       text    COLLATE "C",
  email_search      text    COLLATE "C",
  created_at_ms     bigint,
  completed_at_ms   bigint,
  available_at_ms   bigint,
  said_at_ms        bigint  NOT NULL,
  -- Since when name and e-mail address are kept, here or in a notice: they are dropped in the order of this time. Later than
  -- they came while a notice that names them is owed to the shop. Null: nothing is left to drop.
  personal_since_ms bigint,
  -- They were dropped, and are not kept again.
  forgotten         boolean NOT NULL DEFAULT false,
  -- Notices of the order up to this key do not name them any more.
  dropped_to        bigint  NOT NULL DEFAULT 0,
  PRIMARY KEY (order_key, payment_key)
);
-- In groups of orders that came together: an index of all names would write another page for each payment.
CREATE INDEX payment_by_name ON payment ((order_key >> 10), name_search) WHERE name_search IS NOT NULL;
CREATE INDEX payment_by_email ON payment ((order_key >> 10), email_search) WHERE email_search IS NOT NULL;
CREATE INDEX payment_personal ON payment (personal_since_ms) WHERE personal_since_ms IS NOT NULL;
