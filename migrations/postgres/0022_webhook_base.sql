-- expands
-- The public address to which the service delivers what it says of the link, as it was when the link was made. Null: not known.
ALTER TABLE link ADD COLUMN webhook_base TEXT;
