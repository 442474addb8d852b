-- expands
-- What needs a person is read as one list: held orders and open attention, by kind, the oldest first.
CREATE INDEX hold_by_age ON hold (opened_at_ms, order_key, id) WHERE ended_at_ms IS NULL;
CREATE INDEX attention_by_kind ON attention (kind, opened_at_ms, key) WHERE ended_at_ms IS NULL;

-- A person who ends a matter says that the money was refunded: the order is not flagged for it any longer. Those that were
-- ended before this was so:
UPDATE orders SET flags = trim(replace(',' || flags || ',', ',refund_due,', ','), ',')
  WHERE flags LIKE '%refund_due%' AND NOT EXISTS
    (SELECT 1 FROM attention a WHERE a.order_key = orders.key AND a.kind = 'refund_due' AND a.ended_at_ms IS NULL);
UPDATE orders SET flags = trim(replace(',' || flags || ',', ',duplicate_payment,', ','), ',')
  WHERE flags LIKE '%duplicate_payment%' AND NOT EXISTS
    (SELECT 1 FROM attention a WHERE a.order_key = orders.key AND a.kind = 'duplicate_payment' AND a.ended_at_ms IS NULL);

-- Attempts to tell the shop that failed in a row: one row until the shop takes a notice, none otherwise. The fault and the
-- answer are those of the last. raised: the matter for a person was opened for this row.
CREATE TABLE shop_failure (
  one           smallint PRIMARY KEY CHECK (one = 1),
  attempts      integer NOT NULL,
  since_ms      bigint NOT NULL,
  last_at_ms    bigint NOT NULL,
  fault_code    text    NOT NULL,
  fault_message text    NOT NULL,
  answer_status integer,
  answer_body   text,
  raised        boolean NOT NULL
);
