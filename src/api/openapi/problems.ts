import type { ProblemCode } from '../../http/problem.ts';

type Words = {
  meaning: string;
  /** What to do about it. */
  remedy: string;
};

/** What each problem code means. docs/errors.md says the same, held by a test. */
export const PROBLEM_WORDS: Readonly<Record<ProblemCode, Words>> = {
  invalid_request: {
    meaning: 'a part of the request is missing, unknown or out of its bounds',
    remedy: 'correct the places named: 400 is about its form, 422 about what it asks for',
  },
  unauthorized: { meaning: 'no bearer token, or one that is not known', remedy: 'send `Authorization: Bearer TOKEN`' },
  forbidden: { meaning: "the shop's token may not do this", remedy: "use the operator's" },
  not_found: { meaning: 'there is no such order, event or address', remedy: 'check the reference, id or path' },
  method_not_allowed: { meaning: 'the address takes other methods; `Allow` lists them', remedy: 'use one of those' },
  body_too_large: { meaning: 'the body has more than 65536 bytes', remedy: 'send less' },
  content_type: { meaning: 'the body is not declared as JSON', remedy: 'send `Content-Type: application/json`' },
  reference_conflict: {
    meaning:
      'the order exists with other content, or its link is made by the other side, the shop or settled; the sentence says which',
    remedy: 'repeat its request unchanged, or use a new reference',
  },
  order_cancelled: { meaning: 'the order was cancelled, so nobody is sent to its link', remedy: 'use a new reference' },
  link_expired: {
    meaning: "the order's link has expired, so nobody is sent to it",
    remedy: 'use a new reference; money that is under way all the same still pays the order',
  },
  link_id_conflict: { meaning: 'the order has another link already, and is not open any more', remedy: 'check the id' },
  link_id_taken: { meaning: 'the link belongs to another order', remedy: 'check the id' },
  correction_forbidden: {
    meaning: "only the operator may replace a signing secret or a link's id",
    remedy: "use the operator's token",
  },
  not_held: { meaning: 'only a held order can be resolved', remedy: 'look at it: `settled why ORDER`' },
  nothing_left_to_accept: { meaning: 'the held money has gone back', remedy: 'reject the hold' },
  event_in_work: { meaning: 'the event waits or is being settled already', remedy: 'wait for it' },
  event_body_dropped: {
    meaning: 'the body of the event was dropped after its time (`SETTLED_KEEP_BODIES`): it cannot be settled again',
    remedy: 'ask the service about the order: `settled orders check ORDER`',
  },
  notice_in_work: {
    meaning: 'the notice is being sent, or is sent by itself as soon as its turn comes',
    remedy: 'wait for it',
  },
  cursor_from_before_restore: {
    meaning: 'the cursor is from before the store was restored from a backup',
    remedy: 'read the feed from its beginning: notices that are known have the ids that are known',
  },
  key_not_ours_to_change: {
    meaning: 'the secrets key comes from `SETTLED_SECRETS_KEY`, so settled cannot put another in its place',
    remedy: 'give the new one as `SETTLED_SECRETS_KEY`, the old one as `SETTLED_SECRETS_KEY_PREVIOUS`, and restart',
  },
  backup_not_ours_to_make: {
    meaning: 'the store is PostgreSQL, which settled does not copy',
    remedy: 'use `pg_dump`, or the backups of who runs it: Backup in operations.md',
  },
  not_cancellable: {
    meaning: 'the order is paid, being paid, held or gone back: the service was asked',
    remedy: 'the sentence says what can be done instead; `settled why ORDER` tells the rest',
  },
  not_adoptable: {
    meaning:
      'the order is not open or waits for no link, or the link that was named is not its own: its money, its reference, or a payment on it',
    remedy: "check the id in the service's panel",
  },
  reference_taken: {
    meaning: 'the service has a link of this reference that settled did not make',
    remedy: 'use a new reference; or let a person take it with the command that the sentence shows',
  },
  refused_by_service: {
    meaning: 'the service refuses to make the link; the sentence is its own',
    remedy: 'correct the request; the reference can be used again',
  },
  link_withheld: {
    meaning: 'the service made the link for other money than was asked',
    remedy:
      "look at it in the service's panel; open the order under another reference, for the money that the service asks",
  },
  link_unknown: {
    meaning:
      '503: the link is still being opened, so it cannot be asked about. 409: the service was asked, and has no link of this order',
    remedy:
      '503: try again after `Retry-After` seconds; the sentence says what it waits for. 409: make the link that was reserved, or open the order under another reference',
  },
  api_not_configured: {
    meaning: "this needs the service's API",
    remedy: 'set `SETTLED_API_URL` and `SETTLED_API_KEY`, and start settled again: there is no `Retry-After`',
  },
  api_key_refused: {
    meaning: 'the service refuses the API key, or the merchant is inactive',
    remedy: 'repair the key or ask the service; what was begun goes on by itself then',
  },
  public_url_not_public: {
    meaning: 'links would carry an address for ever to which the service cannot deliver',
    remedy: 'set `SETTLED_PUBLIC_URL` to your https address, and start settled again: there is no `Retry-After`',
  },
  rate_limited: { meaning: 'a captured delivery was verified too often just now', remedy: 'wait some seconds' },
  service_unavailable: {
    meaning: 'the service cannot be asked now; the sentence says why',
    remedy: 'try again after `Retry-After` seconds',
  },
  unavailable: {
    meaning: 'the store cannot answer now',
    remedy: 'send it again after `Retry-After` seconds; `GET /readyz` says why',
  },
  internal: { meaning: "a bug; the log has the request's id", remedy: "report it with the log's lines" },
};
