import { REFERENCE } from './orders.ts';
import type { Samples } from './samples.ts';

const AT = '2030-01-31T12:00:00.000Z';

/** Two lines of a stream. */
const LINES = [
  { at: AT, reference: REFERENCE, what: 'accepted', event: '17', type: 'payment_link.payment_status_changed' },
  {
    at: AT,
    reference: REFERENCE,
    what: 'settled',
    event: '17',
    reading: null,
    outcome: 'applied',
    rule: 'paid',
    state: 'paid',
  },
];

const STATS = {
  orders: {
    awaiting_payment: 3,
    payment_pending: 1,
    paid: 240,
    held: 1,
    expired: 17,
    cancelled: 2,
    refunded: 1,
    disputed: 0,
  },
  events: { pending: 0, leased: 0, done: 981, dead: 0 },
  notices: { pending: 0, leased: 0, done: 302, dead: 0 },
  matters: [{ kind: 'hold', reason: 'amount_mismatch', count: 1, oldestAt: AT }],
  checks: 0,
  checksByClass: { confirm: 0, hint: 0, janitor: 0 },
  openings: { pending: 0, leased: 0, taken: 0 },
  drift: 2,
  api: { slotsInUse: 4, pausedUntil: null },
  rejections: 0,
  lagSeconds: 0,
  noticesLagSeconds: 0,
};

const METRICS = `# HELP settled_orders Orders by state.
# TYPE settled_orders gauge
settled_orders{state="paid"} 240
settled_orders{state="held"} 1
`;

const PAGE = '<!doctype html>\n<html lang="en">…</html>\n';

export const UPKEEP_SAMPLES = {
  tail: { 200: LINES.map((line) => `${JSON.stringify(line)}\n`).join('') },
  showStats: { 200: { stats: STATS } },
  doctor: {
    200: {
      store: '/data/settled.db',
      checks: [
        { name: 'ready', status: 'ok', detail: 'the store is open and can be written' },
        {
          name: 'needs a person',
          status: 'warning',
          detail:
            '1 matter needs a person; the oldest has waited 2 h 10 min. Money: BRL 60.00 captured on 1 order. See: settled ' +
            'attention',
        },
      ],
    },
  },
  makeBackup: {
    201: {
      backup: {
        path: '/data/backups/settled-2030-01-31T12-00-00-000Z.db',
        bytes: 266_240,
        notIncluded:
          'The secrets key is not in the backup. It is kept in /data/settled.db.key; keep a copy apart from the backup.',
      },
    },
  },
  rotateKey: {
    200: {
      rotation: {
        keyId: '0f3a5b7c9d1e2f40',
        previousKeyId: 'b5dada6b58dd18a7',
        secrets: 265,
        resealed: 265,
        keyPlace: '/data/settled.db.key',
        note: 'The new key is in /data/settled.db.key: keep a copy of it apart from the backups.',
      },
    },
  },
  metrics: { 200: METRICS },
  livez: { 200: { live: true } },
  reconcile: { 200: { dryRun: true, links: 4, requests: 4, etaSeconds: 60 } },
  readyz: { 200: { ready: true }, 503: { ready: false, reason: 'the process is stopping' } },
  openapi: { 200: { openapi: '3.1.0', info: { title: 'settled' } } },
  docs: { 200: PAGE },
  index: { 200: PAGE },
} satisfies Samples;
