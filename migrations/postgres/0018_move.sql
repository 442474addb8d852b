-- expands
-- While `settled move` copies a store into this database: whether it is a `copy` or a `rehearsal`. No replica serves it then.
ALTER TABLE instance ADD COLUMN moving TEXT CHECK (moving IN ('copy', 'rehearsal'));
