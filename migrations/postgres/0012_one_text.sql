-- expands
-- What a sentence for people said is kept as data, and src/explain makes the sentence when it is read. Rows of before, and
-- those that a replica of the release before writes, have null: their sentences stay in attention.detail,
-- opening.fault_message and history.what. params: JSON by kind.
ALTER TABLE attention ADD COLUMN params text;
ALTER TABLE attention ADD COLUMN ended_reason text;
ALTER TABLE opening ADD COLUMN foreign_id text;
ALTER TABLE link ADD COLUMN service_secret_flaw text;
ALTER TABLE opening ADD COLUMN needs_id boolean NOT NULL DEFAULT false;
