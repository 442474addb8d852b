-- expands
-- What the service says of each payment beside its status and its money. `payment_key`: the payment's id, or `unnamed`, as in
-- the ledger; the payment may not be counted yet. Null: not said so far, or not read. `said_at_ms`: when the newest of it came.
CREATE TABLE payment (
  order_key         INTEGER NOT NULL REFERENCES orders (key),
  payment_key       TEXT    NOT NULL,
  method            TEXT,
  installments      INTEGER,
  total_brl_minor   INTEGER,
  customer_name     TEXT,
  customer_email    TEXT,
  -- The same without case and accents: the words by which a person searches.
  name_search       TEXT,
  email_search      TEXT,
  created_at_ms     INTEGER,
  completed_at_ms   INTEGER,
  available_at_ms   INTEGER,
  said_at_ms        INTEGER NOT NULL,
  -- Since when name and e-mail address are kept, here or in a notice: they are dropped in the order of this time. Later than
  -- they came while a notice that names them is owed to the shop. Null: nothing is left to drop.
  personal_since_ms INTEGER,
  -- They were dropped, and are not kept again.
  forgotten         INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1)),
  -- Notices of the order up to this key do not name them any more.
  dropped_to        INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (order_key, payment_key)
) STRICT, WITHOUT ROWID;
-- In groups of orders that came together: an index of all names would write another page for each payment.
CREATE INDEX payment_by_name ON payment (order_key >> 10, name_search) WHERE name_search IS NOT NULL;
CREATE INDEX payment_by_email ON payment (order_key >> 10, email_search) WHERE email_search IS NOT NULL;
CREATE INDEX payment_personal ON payment (personal_since_ms) WHERE personal_since_ms IS NOT NULL;
