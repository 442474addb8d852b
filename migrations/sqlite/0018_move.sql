-- expands
-- The PostgreSQL database to which `settled move` moved this store, without its password. From then on the file is not served.
ALTER TABLE instance ADD COLUMN moved_to TEXT;
