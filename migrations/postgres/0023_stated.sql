-- expands
-- What the service named of a payment if the entry cannot say it: the sum of a refund or dispute that is not what was
-- captured, or what stood in the place of an amount that is not readable. For people; no sum counts it.
ALTER TABLE ledger ADD COLUMN stated_amount TEXT;
ALTER TABLE ledger ADD COLUMN stated_currency TEXT;
