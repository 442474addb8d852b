-- expands
-- What independent tries of receiving asked for: each section names what it is for.

-- The signing secret that the service named in its answer to a link's creation, where that is not ours: sealed beside ours,
-- and deliveries are verified with either. `answer_lost`: the link is there, and that answer was never seen.
ALTER TABLE link ADD COLUMN service_sealed_secret BLOB;
ALTER TABLE link ADD COLUMN service_secrets_key_id TEXT;
ALTER TABLE opening ADD COLUMN answer_lost INTEGER NOT NULL DEFAULT 0 CHECK (answer_lost IN (0, 1));

-- What refused deliveries of a link turned out to be: JSON, a code and what belongs to it. A refusal is told to a person
-- once it concerns several links.
ALTER TABLE rejection ADD COLUMN diagnosis TEXT;
CREATE INDEX rejection_by_reason ON rejection (reason, last_at_ms);

-- Money. `is_assumed`: nobody named this money so far. `customer_amount`, `customer_currency`: what the customer paid, as the
-- payment's quote says it, on a link whose own money is the order's; it is not part of any balance.
ALTER TABLE ledger ADD COLUMN is_assumed INTEGER NOT NULL DEFAULT 0 CHECK (is_assumed IN (0, 1));
ALTER TABLE ledger ADD COLUMN customer_amount TEXT;
ALTER TABLE ledger ADD COLUMN customer_currency TEXT;
