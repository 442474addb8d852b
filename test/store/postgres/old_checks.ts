import type pg from 'pg';
import { type CheckReason, checkRank } from '../../../src/domain/check_queue.ts';

/** What programs before migration 0013 sent: two reasons, in columns of `link_check`. `$1` is the link's key. */
const REQUEST = `
  INSERT INTO link_check (link_key, reason, rank, requested_at_ms, due_at_ms, confirm_since_ms, reason_after, heard_after)
  VALUES ($1, $2, $3, $4, $4, NULL, (SELECT last_request FROM api_state), (SELECT last_request FROM api_state))
  ON CONFLICT (link_key) DO UPDATE SET
    reason = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason ELSE link_check.reason END,
    due_at_ms = CASE WHEN excluded.rank > link_check.rank THEN excluded.due_at_ms ELSE link_check.due_at_ms END,
    reason_after = CASE WHEN excluded.rank > link_check.rank THEN excluded.reason_after ELSE link_check.reason_after END,
    again_reason = CASE WHEN excluded.rank > link_check.rank THEN NULL
      WHEN link_check.again_rank IS NULL OR excluded.rank > link_check.again_rank THEN excluded.reason
      ELSE link_check.again_reason END,
    again_rank = CASE WHEN excluded.rank > link_check.rank THEN NULL
      ELSE greatest(coalesce(link_check.again_rank, excluded.rank), excluded.rank) END,
    rank = greatest(link_check.rank, excluded.rank),
    requested_at_ms = greatest(link_check.requested_at_ms, excluded.requested_at_ms),
    heard_after = excluded.heard_after,
    confirm_since_ms = coalesce(link_check.confirm_since_ms, excluded.confirm_since_ms)`;
const LEASE = `UPDATE link_check SET due_at_ms = $2, requested_at_ms = least(requested_at_ms, $3), again_reason = NULL,
  again_rank = NULL WHERE link_key = $1 AND (due_at_ms < $2 OR requested_at_ms > $3)`;
const FALL_BACK = `
  UPDATE link_check SET reason = again_reason, rank = again_rank, again_reason = NULL, again_rank = NULL,
    reason_after = heard_after, due_at_ms = $2, failures = 0, confirm_since_ms = NULL
  WHERE link_key = $1 AND again_reason IS NOT NULL`;
const CONFIRMED = 'UPDATE link_check SET confirm_since_ms = NULL WHERE link_key = $1';
const DROP = 'DELETE FROM link_check WHERE link_key = $1';
const FIND = 'SELECT reason_after, heard_after, again_reason FROM link_check WHERE link_key = $1';

/** The queue of checks as a replica of the release before works on it. */
export class OldReplica {
  readonly #client: pg.Client;

  constructor(client: pg.Client) {
    this.#client = client;
  }

  async hear(linkKey: number, reason: CheckReason, atMs: number): Promise<void> {
    await this.#client.query(REQUEST, [linkKey, reason, checkRank(reason), atMs]);
  }

  async claim(linkKey: number, nowMs: number, leaseMs: number): Promise<void> {
    await this.#client.query(LEASE, [linkKey, nowMs + leaseMs, nowMs]);
  }

  /** The place of a reason that is moot goes to the other, or is given up. */
  async endMoot(linkKey: number, nowMs: number): Promise<void> {
    if ((await this.#client.query(FALL_BACK, [linkKey, nowMs])).rowCount === 0) await this.#drop(linkKey);
  }

  async answer(linkKey: number, reading: number, nowMs: number): Promise<void> {
    const [check] = (await this.#client.query(FIND, [linkKey])).rows;
    if (check === undefined) return;
    if (Number(check.heard_after) < reading) await this.#drop(linkKey);
    else if (Number(check.reason_after) >= reading) await this.#client.query(CONFIRMED, [linkKey]);
    else if ((await this.#client.query(FALL_BACK, [linkKey, nowMs])).rowCount === 0) {
      await this.#client.query(CONFIRMED, [linkKey]);
    }
  }

  async #drop(linkKey: number): Promise<void> {
    await this.#client.query(DROP, [linkKey]);
  }
}
