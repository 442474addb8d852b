import { beforeAll, expect, it } from 'vitest';
import { enter } from '../support/access.ts';
import { expectToFit, LOOKS, useBrowser } from '../support/browser.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { seedEveryMatter } from '../support/matters.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';

const settled = sharedApp();
const open = useBrowser();
let [eventId, noticeId] = ['', ''];
beforeAll(async () => {
  const link = await settled().reserve('lamp-0b77e1');
  await settled().deliver(link, paymentEvent({ linkId: 'pl_1', amount: '60.00' }));
  await eventually(async () => expect((await settled().order('lamp-0b77e1')).state).toBe('held'));
  eventId = (await settled().api('/v1/events?reference=lamp-0b77e1')).body.events[0].id;
  noticeId = (await settled().api('/v1/notices?reference=lamp-0b77e1')).body.notices[0].id;
  await seedEveryMatter(settled(), Date.now());
});

const pages = () =>
  [
    '/',
    '/attention',
    '/orders',
    '/orders?q=nowhere&since=2026-01-01',
    '/orders?since=yesterday&state=lost&cursor=x',
    '/orders/lamp-0b77e1',
    '/orders/order-status_unclear',
    `/events/${eventId}`,
    `/notices/${noticeId}`,
    '/service',
    '/audit',
  ].map((path) => settled().apiUrl + path);

it.each(LOOKS)('pages have no overflow at %i px (%s), and no fault that axe finds on one of %i', async (...look) => {
  const tab = await open({ width: look[0], height: 800 });
  await enter(tab, settled(), '/');
  await expectToFit(tab, pages(), look);
});
