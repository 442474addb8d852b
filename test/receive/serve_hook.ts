import express from 'express';
import { openLog } from '../../src/observe/log.ts';
import { headerNames } from '../../src/paylink/events.ts';
import { bodyReader } from '../../src/receive/body.ts';
import { hooksOf } from '../../src/receive/route.ts';
import type { LinkCredentials } from '../../src/secrets/credentials.ts';
import { systemClock } from '../../src/work/clock.ts';
import { serveHere } from '../support/http.ts';

export const LINK: LinkCredentials = {
  linkKey: 1,
  reference: 'order-1',
  token: 'x'.repeat(32),
  secret: 'a-secret-of-at-least-24-bytes',
};

/** The hook's routes over a store of the test's own. */
export async function serveHook(over: {
  isClosed?: () => boolean;
  recordDelivery?: () => Promise<never>;
  /** Finds a link that is not cached; by default the only link is. */
  find?: () => Promise<LinkCredentials | null>;
}) {
  const bodies = bodyReader();
  const outcomes: string[] = [];
  /** Notes of deliveries that were refused unread: the link's key and why. */
  const unread: [linkKey: number, reason: string][] = [];
  const credentials = {
    cachedByToken: () => (over.find === undefined ? LINK : undefined),
    cachedByLinkKey: () => LINK,
    cachedByLinkId: () => undefined,
    knows: () => true,
    find: over.find ?? (async () => LINK),
    keep: () => {},
    forget: () => {},
    noteLinkId: () => {},
  };
  const { router } = hooksOf({
    bodies,
    credentials,
    onNamed: () => {},
    store: {
      recordDelivery: over.recordDelivery ?? (async () => ({ outcome: 'recorded', eventKey: 1 })),
      recordHint: async () => {},
    },
    rejections: { add: (linkKey, reason) => void unread.push([linkKey, reason]) },
    clock: systemClock,
    log: openLog('silent'),
    headerNames: headerNames('x-service'),
    toleranceSeconds: 300,
    crossOrigin: null,
    isClosed: over.isClosed ?? (() => false),
    onRecorded: () => {},
    onOutcome: ({ outcome }) => outcomes.push(outcome),
    onUnread: () => {},
  });
  const url = await serveHere(express().use(router));
  return { url: `${url}/hooks/${LINK.token}`, bodies, outcomes, unread };
}
