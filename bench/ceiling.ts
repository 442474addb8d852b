import { randomUUID } from 'node:crypto';
import { createApp, healthRoutes } from '../src/http/app.ts';
import { openConnections } from '../src/http/connections.ts';
import { connectionsMax, listen } from '../src/http/server.ts';
import { openLog } from '../src/observe/log.ts';
import { HEADER_PREFIX, headerNames } from '../src/paylink/events.ts';
import { bodyReader } from '../src/receive/body.ts';
import { hooksOf } from '../src/receive/route.ts';
import type { Credentials, LinkCredentials } from '../src/secrets/credentials.ts';
import { systemClock } from '../src/work/clock.ts';
import { benchLink } from './deliveries.ts';

/**
 * The ceiling: settled's own route, Express application and server, verifying the same deliveries and storing nothing.
 * Arguments: port, number of the first link, number of links, and `each` or `grouped`.
 *
 * `grouped` sends the answers of one turn of the event loop together, like a store with group commit. That costs the
 * client and the server fewer wake-ups, so it is the higher of the two ceilings.
 */
const [portText, fromText, countText, manner] = process.argv.slice(2) as [string, string, string, string];
const [port, from, count] = [portText, fromText, countText].map(Number) as [number, number, number];

const byToken = new Map<string, LinkCredentials>();
const byLinkId = new Map<string, LinkCredentials>();
for (let n = from; n < from + count; n++) {
  const { token, secret, linkId } = benchLink(n);
  const credentials = { linkKey: n, reference: `order-${n}`, token, secret };
  byToken.set(token, credentials);
  byLinkId.set(linkId, credentials);
}
const credentials: Credentials = {
  cachedByToken: (token) => byToken.get(token),
  cachedByLinkKey: () => undefined,
  cachedByLinkId: () => undefined,
  knows: () => true,
  keep: () => {},
  find: async (by) => ('linkId' in by ? byLinkId.get(by.linkId) : undefined) ?? null,
  forget: () => {},
  noteLinkId: () => {},
};

const RECORDED = { outcome: 'recorded', eventKey: 1 } as const;
let waiting: ((recorded: typeof RECORDED) => void)[] = [];

function answerTogether(): Promise<typeof RECORDED> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) > 1) return;
    setImmediate(() => {
      const group = waiting;
      waiting = [];
      for (const answer of group) answer(RECORDED);
    });
  });
}

const log = openLog('warn');
const hooks = hooksOf({
  store: { recordDelivery: manner === 'grouped' ? answerTogether : async () => RECORDED, recordHint: async () => {} },
  credentials,
  onNamed: () => {},
  rejections: { add: () => {} },
  clock: systemClock,
  log,
  toleranceSeconds: 86_400,
  headerNames: headerNames(HEADER_PREFIX),
  onRecorded: () => {},
  bodies: bodyReader(),
  crossOrigin: null,
  isClosed: () => false,
  onOutcome: () => {},
  onUnread: () => {},
});
const health = healthRoutes(() => ({ ready: true }));
await listen({
  address: { host: '127.0.0.1', port },
  handler: createApp({ routers: [hooks.router, health], log, newId: randomUUID }),
  refuseContinue: hooks.refuseContinue,
  clock: systemClock,
  connections: openConnections({ clock: systemClock, ...connectionsMax().hooks, onUnreadable: () => {} }),
});

process.once('SIGTERM', () => process.exit(0));
