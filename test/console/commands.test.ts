import { describe, expect, it } from 'vitest';
import { prose } from '../../src/console/values.ts';
import { MATTER_KINDS } from '../../src/domain/matter.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../../src/domain/order.ts';
import { explainAttention } from '../../src/explain/attention_sentences.ts';
import { namedToken } from '../support/access.ts';
import { paymentEvent } from '../support/deliveries.ts';
import { freshReference, sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { see as seeAt, textOf } from './reading.ts';
import { viewOf } from './sample.ts';

const operator = { name: 'ana', role: 'operator' } as const;
const viewer = { name: 'eva', role: 'viewer' } as const;

function shown(sentence: string, session: { name: string; role: 'viewer' | 'operator' } = operator, name = '') {
  const { markup } = prose(viewOf({ session, prefix: '/ops', path: '/attention' }), sentence, name);
  const links = [...markup.matchAll(/href="([^"]*)"/g)].map(([, href = '']) => textOf(`<main>${href}`).trim());
  return { text: textOf(`<main>${markup}`).trim(), links };
}

describe('console: commands that sentences name', () => {
  it.each([
    ['See: settled attention', 'See: what needs attention', ['/ops/attention']],
    ['Why: settled why tea-1. Then', 'Why: order tea-1. Then', ['/ops/orders/tea-1']],
    ["Why: settled why 'it'\\''s a <b>'.", "Why: order it's a <b>.", ["/ops/orders/it's%20a%20%3Cb%3E"]],
    ['ask: settled orders check tea-1.', 'ask: Ask the service now.', ['/ops/orders/tea-1#actions']],
    [
      'settled orders resolve tea-1 --accept --reason TEXT. No',
      'Accept…. No',
      ['/ops/orders/tea-1?open=accept#accept'],
    ],
    ['settled orders resolve tea-1 --reject --reason TEXT', 'Reject…', ['/ops/orders/tea-1?open=reject#reject']],
    [
      'see settled events show 17, and settled events show 18',
      'see event 17, and event 18',
      ['/ops/events/17', '/ops/events/18'],
    ],
    [
      'again: settled events replay 17 18. If',
      'again: settle event 17 again…, settle event 18 again…. If',
      ['/ops/events/17?open=replay-17#replay-17', '/ops/events/18?open=replay-18#replay-18'],
    ],
    [
      'now: settled notices resend msg_17_8f14',
      'now: send it again…',
      ['/ops/notices/msg_17_8f14?open=resend-msg_17_8f14#resend-msg_17_8f14'],
    ],
    [
      'end this matter: settled attention end 5 --reason TEXT.',
      'end this matter: End it….',
      ['/ops/attention?open=end-5#end-5'],
    ],
    ['all: settled notices list --status dead. Again', 'all: the notices. Again', ['/ops/shop?status=dead']],
    [
      'again: settled bulk resend --status dead (with --dry-run it only counts them)',
      'again: send them again',
      ['/ops/shop?status=dead'],
    ],
    ['now: settled bulk resend --status pending', 'now: send them again', ['/ops/shop?status=pending']],
    ['orders: settled orders list --state held', 'orders: orders that are held', ['/ops/orders?state=held']],
    ['which: settled rejections. This', 'which: the rejected deliveries. This', ['/ops/deliveries/rejections']],
  ])('are a place of the console: %s', (sentence, text, links) => {
    expect(shown(sentence, operator, 'tea-1')).toEqual({ text, links });
  });

  it.each([
    'settled links reserve tea-1 --amount 100.00 && settled links add tea-1 --amount 100.00 --id pl_1',
    'settled verify --order tea-1 --body FILE',
    'settled whyever',
    'settled attention-seeking',
    'settled doctors',
  ])('stay if the console has no place for them: %s', (command) => {
    expect(shown(`Do: ${command}`)).toEqual({ text: `Do: ${command}`, links: [] });
  });

  it('say to a reader who may not use the form who may', () => {
    const { text, links } = shown('Accept: settled orders resolve tea-1 --accept --reason TEXT', viewer);
    expect([text, links]).toEqual(['Accept: Accept… (an operator may)', []]);
  });

  it('leave no command of a matter that a person could not run in a browser', () => {
    const reader = { key: 5, canAsk: true };
    const params = { eventId: 'evt_1', beforeKey: 3, eventKey: 4 };
    const { text } = shown(explainAttention({ kind: 'event_conflict', subject: 'pl_1', params }, reader));
    expect(text).toContain('event 3');
    expect(text).not.toContain('settled events');
    expect(text).not.toContain('settled attention');
  });
});

describe('console: words', () => {
  const settled = sharedApp();

  const see = async (path: string, role: 'viewer' | 'operator' = 'viewer') =>
    seeAt(settled(), path, { token: await namedToken(settled(), role, freshReference()) });

  it('lead from the first page to all checks, the worst first', async () => {
    const [, href = ''] = /href="([^"]*)">All checks</.exec((await see('/')).markup) ?? [];
    const rank = ['failing', 'warning', 'ok'];
    const ranks = [...(await see(href)).markup.matchAll(/<span class="badge \w+">(failing|warning|ok)</g)].map(
      ([, verdict = '']) => rank.indexOf(verdict),
    );
    expect(ranks.length).toBeGreaterThan(5);
    expect([...ranks].sort()).toEqual(ranks);
    expect(new Set(ranks).size).toBeGreaterThan(1);
  });

  it("are not settled's own names for classes of checks and outcomes", async () => {
    const link = await settled().reserve(freshReference());
    for (const id of ['evt_a', 'evt_b'])
      await settled().deliver(link, paymentEvent({ id, amount: '100.00', linkId: 'pl_w' }));
    await eventually(async () => {
      const { events } = (await settled().api(`/v1/events?reference=${link.reference}`)).body;
      expect(events.map(({ outcome }: { outcome: string | null }) => outcome)).toContain('already_applied');
    });
    const { events } = (await settled().api(`/v1/events?reference=${link.reference}`)).body;
    const pages = [
      '/service',
      '/deliveries',
      ...events.map(({ id }: { id: string }) => `/events/${id}`),
      `/orders/${link.reference}`,
    ];
    for (const path of pages) {
      const { text } = await see(path, 'operator');
      expect([path, /\b(confirm|hint|janitor|already[_ ]applied)\b/.exec(text)?.[0] ?? null]).toEqual([path, null]);
    }
    expect((await see('/service')).text).toContain('new links, and the schedule');
  });

  it('are explained on a page that the menu leads to', async () => {
    const { markup } = await see('/');
    expect(markup).toContain('<a href="/help">Help</a>');
    const { text } = await see('/help');
    for (const name of [...ORDER_STATES, ...FLAGS, ...HOLD_REASONS, ...MATTER_KINDS])
      expect(text).toContain(name.replaceAll('_', ' '));
  });
});
