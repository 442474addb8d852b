-- expands
-- Requests in a row, of all replicas, that got no answer of the service's API, and when the first of them ended.
ALTER TABLE api_state ADD COLUMN unanswered INTEGER NOT NULL DEFAULT 0;
ALTER TABLE api_state ADD COLUMN unanswered_since_ms INTEGER NOT NULL DEFAULT 0;
