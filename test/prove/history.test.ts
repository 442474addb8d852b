import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findBroken, type History, type SentEvent } from '../../prove/failover/history.ts';
import type { SeenNotice } from '../../prove/harness/shop.ts';

/** What was seen of an order that was paid, and of one that was refunded as well. */
function seen(): { events: SentEvent[]; told: SeenNotice[]; feed: SeenNotice[] } {
  const events: SentEvent[] = [
    { id: 'evt_1', reference: 'order-1', type: 'order.paid', isAcknowledged: true },
    { id: 'evt_2', reference: 'order-2', type: 'order.paid', isAcknowledged: true },
    { id: 'evt_3', reference: 'order-2', type: 'order.refunded', isAcknowledged: true },
  ];
  const feed: SeenNotice[] = [
    { id: 'msg_1', reference: 'order-1', type: 'order.paid', version: 2 },
    { id: 'msg_2', reference: 'order-2', type: 'order.paid', version: 2 },
    { id: 'msg_3', reference: 'order-2', type: 'order.refunded', version: 3 },
  ];
  return { events, told: [...feed], feed };
}

const [, SECOND, THIRD] = seen().feed as [SeenNotice, SeenNotice, SeenNotice];

describe('a history of what was seen while servers failed', () => {
  it('is whole if each acknowledged event was told of once, in order, and the feed has the same', () => {
    expect(findBroken(seen())).toEqual([]);
  });

  it('may repeat a notice, and may have an event that was never acknowledged', () => {
    const { events, told, feed } = seen();
    const given = { id: 'evt_4', reference: 'order-4', type: 'order.paid', isAcknowledged: false } as const;
    expect(findBroken({ events: [...events, given], told: [...told, SECOND], feed })).toEqual([]);
  });

  const planted: [string, (history: ReturnType<typeof seen>) => History, string[]][] = [
    [
      'a lost event',
      ({ told, feed, ...rest }) => ({ ...rest, told: told.slice(1), feed: feed.slice(1) }),
      ['evt_1 was acknowledged, and the shop was never told order.paid of order-1'],
    ],
    [
      'a lost notice',
      ({ told, ...rest }) => ({ ...rest, told: told.slice(0, 2) }),
      [
        'evt_3 was acknowledged, and the shop was never told order.refunded of order-2',
        'msg_3 is in the feed and never reached the shop',
      ],
    ],
    [
      'a double settlement',
      ({ events, told, feed }) => {
        const again = { ...SECOND, id: 'msg_9', version: 4 };
        return { events, told: [...told, again], feed: [...feed, again] };
      },
      ['order.paid of order-2 was told as msg_2, msg_9'],
    ],
    [
      'money that nobody reported',
      ({ events, ...rest }) => ({ ...rest, events: events.slice(1) }),
      ['msg_1 tells order.paid of order-1, of which no event was sent'],
    ],
    [
      'a notice that came before an earlier one',
      ({ told: [first], ...rest }) => ({ ...rest, told: [first as SeenNotice, THIRD, SECOND] }),
      ['the shop got msg_2, version 2 of order-2, after version 3'],
    ],
    [
      'a version that was given twice',
      ({ events, feed: [first] }) => {
        const notices = [first as SeenNotice, SECOND, { ...THIRD, version: 2 }];
        return { events, told: notices, feed: notices };
      },
      [
        'the shop got msg_3, version 2 of order-2, after version 2',
        'the feed got msg_3, version 2 of order-2, after version 2',
      ],
    ],
    [
      'a notice that only the shop got',
      ({ feed, ...rest }) => ({ ...rest, feed: feed.slice(0, 2) }),
      ['msg_3 reached the shop and is not in the feed'],
    ],
    [
      'a notice that the feed has twice',
      ({ feed, ...rest }) => ({ ...rest, feed: [...feed, ...feed.slice(0, 1)] }),
      ['the feed got msg_1, version 2 of order-1, after version 2', 'the feed has 1 notices more than once'],
    ],
  ];
  it.each(planted)('%s is found', (_, plant, broken) => {
    expect(findBroken(plant(seen()))).toEqual(broken);
  });

  it('is broken if any one of its notices is missing at the shop', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.nat(), (orders, lost) => {
        const references = Array.from({ length: orders }, (_, n) => `order-${n}`);
        const feed = references.map((reference, n) => ({ id: `msg_${n}`, reference, type: 'order.paid', version: 2 }));
        const events = references.map((reference): SentEvent => {
          return { id: `evt_${reference}`, reference, type: 'order.paid', isAcknowledged: true };
        });
        expect(findBroken({ events, told: feed, feed })).toEqual([]);
        expect(findBroken({ events, told: feed.toSpliced(lost % orders, 1), feed })).toHaveLength(2);
      }),
    );
  });
});
