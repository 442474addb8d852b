import { beforeEach, describe, expect, it } from 'vitest';
import { NO_DETAILS } from '../../../src/domain/payment_details.ts';
import { readSearch } from '../../../src/domain/search.ts';
import type { OrderFilter } from '../../../src/store/verbs/orders_list.ts';
import { stated } from '../../support/orders.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

export function listsContract({ fresh }: Worlds): void {
  let world: World;
  beforeEach(async () => {
    world = await fresh();
  });

  async function newOrders(...names: string[]): Promise<Link[]> {
    const links: Link[] = [];
    for (const reference of names) links.push(await world.newLink({ reference }));
    return links;
  }

  /** The references that a filter lets through; a count says the same, and so does a walk over pages of one. */
  async function references(filter: OrderFilter): Promise<string[]> {
    const { rows, next, count } = await world.store.listOrders({ limit: 100, isCounted: true, ...filter });
    const found = rows.map(({ value }) => value.reference);
    expect({ next, count }).toEqual({ next: null, count: { n: found.length, isMore: false } });
    const walked: string[] = [];
    for (let after: number | null = null; ; ) {
      const page = await world.store.listOrders({ limit: 1, after, ...filter });
      walked.push(...page.rows.map(({ value }) => value.reference));
      after = page.next;
      if (after === null) break;
    }
    expect(walked).toEqual(found);
    return found;
  }

  const search = (text: string) => references({ search: readSearch(text) });

  describe('searching orders', () => {
    it('finds a reference by all of it or its beginning, whatever its characters mean elsewhere', async () => {
      await newOrders('50% off', 'under_score', 'back\\slash', "o'clock", 'Zebra', 'zeta', 'élan', 'e\u{10ffff}x');
      const found: [string, string[]][] = [
        ['50% off', ['50% off']],
        ['50%', ['50% off']],
        ['%', []],
        ['under_', ['under_score']],
        ['underX', []],
        ['back\\', ['back\\slash']],
        ["o'", ["o'clock"]],
        ['off', ['50% off']],
        ['Z', ['Zebra']],
        ['z', ['zeta']],
        // A letter alone is a word, and not the beginning of one.
        ['é', ['e\u{10ffff}x', 'élan']],
        ['e', ['e\u{10ffff}x']],
        ['e\u{10ffff}', ['e\u{10ffff}x']],
        ['nowhere', []],
      ];
      for (const [text, expected] of found) expect([text, await search(text)]).toEqual([text, expected]);
    });

    it('finds what a person has of an order: ids of its link, payment, event and notice, and its addresses', async () => {
      const [, b] = (await newOrders('a', 'b', 'c')) as [Link, Link, Link];
      await world.settle(b, [said('completed', { paymentId: 'pay_b' })], { linkIds: ['pl_b'] });
      await world.run(`UPDATE link SET url = 'https://pay.example.com/l/AbC', short_url = 'https://p.example/x1'
        WHERE link_id = 'pl_b'`);
      const [event] = (await world.timeline(b)).events;
      const [notice] = (await world.timeline(b)).notices;
      const texts = ['pl_b', 'pay_b', event?.eventId, String(event?.key), notice?.id].map(String);
      const addresses = [
        'https://pay.example.com/l/AbC',
        'pay.example.com/l/AbC/',
        'HTTPS://P.example/x1?utm_source=mail',
      ];
      for (const text of [...texts, ...addresses]) expect([text, await search(text)]).toEqual([text, ['b']]);
      for (const text of ['pl_', 'PAY_B', 'https://pay.example.com/l/abc', `${notice?.id}0`, '999']) {
        expect([text, await search(text)]).toEqual([text, []]);
      }
    });

    it('finds amounts that orders ask, or that were captured, in every currency that they may be of', async () => {
      const money = (reference: string, amountMinor: number, currency: string) =>
        world.newLink({ reference, amount: { amountMinor, currency } });
      await money('asks', 15_000, 'BRL');
      await money('yen', 150, 'JPY');
      await money('dinar', 150_000, 'KWD');
      await money('dollar', 15_000, 'USD');
      const held = await money('held', 10_000, 'BRL');
      await world.settle(held, [said('completed', { linkMoney: stated('150.00') })]);
      const paid = await money('paid', 15_000, 'BRL');
      await world.settle(paid, [said('completed', { linkMoney: stated('150.00') })]);
      await money('other', 15_001, 'BRL');
      expect(await search('150')).toEqual(['paid', 'held', 'dollar', 'dinar', 'yen', 'asks']);
      expect(await search('R$ 150,00')).toEqual(['paid', 'held', 'asks']);
      expect(await search('BRL 150')).toEqual(['paid', 'held', 'asks']);
      expect(await search('150.00 usd')).toEqual(['dollar']);
      expect(await search('150.000,00')).toEqual([]);
      expect(await search('EUR 150')).toEqual([]);
    });

    it('finds payments that were reported and not counted, or not so, by their id and their amount', async () => {
      const [unclear, asked, other, plain, total] = (await newOrders(
        'unclear',
        'asked',
        'other',
        'plain',
        'total',
      )) as [Link, Link, Link, Link, Link];
      const money = { linkMoney: stated('150.00') };
      await world.settle(unclear, [said('unclear', { paymentId: 'pay_unclear', ...money })]);
      await world.settle(asked, [said('completed', { paymentId: 'pay_asked', ...money })], {
        policy: { asks: 'always' },
      });
      await world.settle(other, [said('completed', { paymentId: 'pay_other' })]);
      await world.settle(other, [said('completed', { paymentId: 'pay_other', ...money })]);
      await world.settle(plain, [said('completed', { paymentId: 'pay_plain' })]);
      await world.settle(plain, [said('completed', { paymentId: 'pay_plain' })]);
      const details = [{ ...NO_DETAILS, paymentId: 'pay_total', totalBrlMinor: 15_000 }];
      await world.settle(total, [said('completed', { paymentId: 'pay_total' })], { details });
      for (const name of ['unclear', 'asked', 'other', 'plain', 'total'])
        expect([name, await search(`pay_${name}`)]).toEqual([name, [name]]);
      expect(await search('150')).toEqual(['total', 'other', 'asked', 'unclear']);
      expect(await search('USD 150')).toEqual([]);
    });

    it('finds references in another case, and customers by a word of a name, or by an e-mail address', async () => {
      const [a, b, c, d] = (await newOrders('Tea-1', 'LAMP-1', 'sofa-1', 'Sofa-2')) as [Link, Link, Link, Link];
      for (const [link, customerName, customerEmail] of [
        [a, 'Ana Maria de Souza_Lima', null],
        [b, 'José Antônio', 'ze@example.com'],
        [c, 'Ana_Costa', 'ANA@example.com'],
        [d, null, 'joselito@example.com'],
      ] as const) {
        const details = [{ ...NO_DETAILS, paymentId: 'pay_1', customerName, customerEmail }];
        await world.settle(link, [said('completed', { paymentId: 'pay_1' })], { details });
      }
      const found: [string, string[]][] = [
        ['TEA', ['Tea-1']],
        ['tea-1', ['Tea-1']],
        ['lamp', ['LAMP-1']],
        ['SOFA', ['Sofa-2', 'sofa-1']],
        ['sofa', ['Sofa-2', 'sofa-1']],
        ['souza', ['Tea-1']],
        ['Maria de', ['Tea-1']],
        ['ouza', []],
        ['souza.', []],
        ['JOSE', ['Sofa-2', 'LAMP-1']],
        ['josé a', ['LAMP-1']],
        ['ana', ['sofa-1', 'Tea-1']],
        ['Ana@Example.com', ['sofa-1']],
        ['ana_', ['sofa-1']],
        ['costa', []],
        ['%', []],
      ];
      for (const [text, expected] of found) expect([text, await search(text)]).toEqual([text, expected]);
    });

    it('narrows what it finds by other filters', async () => {
      const [a] = (await newOrders('o-1', 'o-2')) as [Link];
      await world.settle(a, [said('completed')]);
      expect(await references({ search: readSearch('o-'), states: ['paid'] })).toEqual(['o-1']);
      expect(await references({ search: readSearch('o-'), states: ['held'] })).toEqual([]);
    });
  });

  describe('filters of orders', () => {
    it('lets states through, one or several', async () => {
      const [a, b] = (await newOrders('a', 'b', 'c')) as [Link, Link];
      await world.settle(a, [said('completed')]);
      await world.settle(b, [said('completed', { linkMoney: stated('60.00') })]);
      expect(await references({ states: ['held'] })).toEqual(['b']);
      expect(await references({ states: ['expired'] })).toEqual([]);
      expect(await references({ states: ['paid', 'held'] })).toEqual(['b', 'a']);
      expect(await references({ states: ['paid', 'awaiting_payment'] })).toEqual(['c', 'a']);
    });

    it('lets flags, open matters and open holds through', async () => {
      const [a, b, c] = (await newOrders('a', 'b', 'c', 'd')) as [Link, Link, Link];
      await world.settle(a, [said('completed', { paymentId: 'pay_1' })]);
      await world.settle(a, [said('completed', { paymentId: 'pay_2' })]);
      for (const link of [b, c]) await world.settle(link, [said('completed', { linkMoney: stated('60.00') })]);
      await world.resolve(c, 'accept');
      expect(await references({ flag: 'duplicate_payment' })).toEqual(['a']);
      expect(await references({ flag: 'underpaid' })).toEqual(['c']);
      expect(await references({ flag: 'late' })).toEqual([]);
      expect(await references({ matter: 'duplicate_payment' })).toEqual(['a']);
      expect(await references({ matter: 'hold' })).toEqual(['b']);
      expect(await references({ hold: 'amount_mismatch' })).toEqual(['b']);
      expect(await references({ hold: 'unconfirmed' })).toEqual([]);
    });

    it('lets orders through on which more is left than they ask', async () => {
      const [a, b, c] = (await newOrders('a', 'b', 'c', 'd')) as [Link, Link, Link];
      for (const paymentId of ['pay_1', 'pay_2']) {
        for (const link of [a, b])
          await world.settle(link, [said('completed', { paymentId: `${paymentId}${link.reference}` })]);
      }
      await world.settle(b, [said('refunded', { paymentId: 'pay_2b' })]);
      await world.settle(c, [said('completed', { linkMoney: stated('150.00') })]);
      expect(await references({ isOverpaid: true })).toEqual(['c', 'a']);
      expect(await references({ isOverpaid: true, states: ['paid'] })).toEqual(['a']);
    });

    it('compares what is left with what an order asks in its own currency alone', async () => {
      const [more, less] = (await newOrders('more', 'less')) as [Link, Link];
      await world.settle(more, [said('completed', { paymentId: 'pay_more' })]);
      await world.settle(less, [said('completed', { paymentId: 'pay_less', linkMoney: stated('60.00') })]);
      await world.resolve(less, 'accept');
      for (const link of [more, less]) {
        const dollars = { paymentId: `pay_usd_${link.reference}`, linkMoney: stated('50.00', 'USD') };
        await world.settle(link, [said('completed', dollars)]);
      }
      expect(await references({ isOverpaid: true })).toEqual([]);
      expect(await references({ flag: 'underpaid' })).toEqual(['less']);
    });

    it('lets times of creation through, on a clock that was set back too, and among days', async () => {
      const atMs: number[] = [];
      for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
        await newOrders(name);
        atMs.push(world.nowMs);
        world.tick(name < 'e' ? (name === 'c' ? -1_500 : 60_000) : 86_400_000);
      }
      const [a = 0, b = 0, c = 0, , e = 0, f = 0, g = 0] = atMs;
      const found: [OrderFilter, string[]][] = [
        [{ sinceMs: b, untilMs: c }, ['d', 'c', 'b']],
        [{ sinceMs: b + 1 }, ['g', 'f', 'e', 'd', 'c']],
        [{ untilMs: b - 1 }, ['a']],
        [{ untilMs: a - 1 }, []],
        [{ untilMs: e }, ['e', 'd', 'c', 'b', 'a']],
        [{ sinceMs: e, untilMs: f }, ['f', 'e']],
        [{ sinceMs: g + 1 }, []],
      ];
      for (const [filter, expected] of found) expect([filter, await references(filter)]).toEqual([filter, expected]);
    });

    it('lets times of payment and money through', async () => {
      const atMs: Record<string, number> = {};
      for (const [name, amountMinor, currency] of [
        ['a', 5_000, 'BRL'],
        ['b', 10_000, 'BRL'],
        ['c', 10_000, 'USD'],
      ] as const) {
        const link = await world.newLink({ reference: name, amount: { amountMinor, currency } });
        world.tick(60_000);
        await world.settle(link, [
          said('completed', { linkMoney: stated(name === 'a' ? '50.00' : '100.00', currency) }),
        ]);
        atMs[name] = world.nowMs;
      }
      await newOrders('d');
      expect(await references({ paidSinceMs: atMs.b ?? 0 })).toEqual(['c', 'b']);
      expect(await references({ paidUntilMs: atMs.b ?? 0 })).toEqual(['b', 'a']);
      expect(await references({ paidSinceMs: atMs.b ?? 0, paidUntilMs: atMs.b ?? 0 })).toEqual(['b']);
      expect(await references({ currency: 'USD' })).toEqual(['c']);
      expect(await references({ currency: 'BRL', fromMinor: 5_001 })).toEqual(['d', 'b']);
      expect(await references({ currency: 'BRL', toMinor: 5_000 })).toEqual(['a']);
      expect(await references({ currency: 'BRL', fromMinor: 5_000, toMinor: 9_999, states: ['paid'] })).toEqual(['a']);
    });
  });

  describe('filters of other lists', () => {
    it('lets events through by status, type, outcome, time and order', async () => {
      const [a, b] = (await newOrders('a', 'b')) as [Link, Link];
      await world.settle(a, [said('completed')]);
      const [{ key: paid } = { key: 0 }] = (await world.timeline(a)).events;
      const other = (await world.deliver(a, { type: 'other', receivedAtMs: world.tick() })).eventKey;
      const dead = await world.deadEvent(a);
      const ofB = (await world.deliver(b)).eventKey;
      const found: [object, number[]][] = [
        [{ type: 'other' }, [other]],
        [{ outcome: 'applied' }, [paid]],
        [{ status: 'dead' }, [dead]],
        [{ status: 'leased' }, [other]],
        [{ status: 'pending' }, [ofB]],
        [{ status: 'dead', type: 'other' }, []],
        [{ untilMs: world.nowMs - 1 }, [paid]],
        [{ sinceMs: world.nowMs }, [ofB, dead, other]],
        [{ sinceMs: world.nowMs + 1 }, []],
        [{ sinceMs: world.nowMs, reference: 'a', type: 'other' }, [other]],
        [{ reference: 'a' }, [dead, other, paid]],
        [{ reference: 'b', status: 'pending' }, [ofB]],
        [{ reference: 'b', status: 'done' }, []],
        [{ reference: 'nobody' }, []],
      ];
      for (const [filter, keys] of found) {
        const { rows, count } = await world.store.listEvents({ limit: 9, isCounted: true, ...filter });
        expect([filter, rows.map(({ key }) => key)]).toEqual([filter, keys]);
        expect(count).toEqual({ n: keys.length, isMore: false });
      }
    });

    it('lets notices through by type and time, and rejections by reason and order, in pages', async () => {
      const [a, b] = (await newOrders('a', 'b')) as [Link, Link];
      await world.settle(a, [said('completed')]);
      const betweenMs = world.nowMs;
      await world.settle(b, [said('completed', { linkMoney: stated('60.00') })]);
      const notices = async (filter: object) => {
        const { rows, count } = await world.store.listNotices({ limit: 9, isCounted: true, ...filter });
        expect(count).toEqual({ n: rows.length, isMore: false });
        return rows.map(({ type }) => type);
      };
      expect(await notices({ type: 'order.held' })).toEqual(['order.held']);
      expect(await notices({ untilMs: betweenMs })).toEqual(['order.paid']);
      expect(await notices({ sinceMs: betweenMs + 1, status: 'pending' })).toEqual(['order.held']);
      expect(await notices({ status: 'dead', type: 'order.paid' })).toEqual([]);
      for (const [{ linkKey }, reason] of [
        [a, 'signature_wrong'],
        [b, 'signature_wrong'],
        [a, 'timestamp_missing'],
      ] as const) {
        await world.store.recordRejection({ linkKey, reason, count: 1, lastAtMs: world.nowMs });
      }
      const rejections = async (filter: object, limit = 9) => {
        const { rows, count } = await world.store.listRejections({ limit, isCounted: true, ...filter });
        if (!('after' in filter) && limit === 9) expect(count).toEqual({ n: rows.length, isMore: false });
        return rows.map(({ reference, reason, key }) => ({ key, row: `${reference} ${reason}` }));
      };
      const rows = async (filter: object) => (await rejections(filter)).map(({ row }) => row);
      expect(await rows({ reason: 'timestamp_missing' })).toEqual(['a timestamp_missing']);
      expect(await rows({ reference: 'a' })).toEqual(['a timestamp_missing', 'a signature_wrong']);
      expect(await rows({ reference: 'nobody' })).toEqual([]);
      const first = await rejections({}, 2);
      expect(first.map(({ row }) => row)).toEqual(['a timestamp_missing', 'b signature_wrong']);
      expect(await rows({ after: first[1]?.key })).toEqual(['a signature_wrong']);
    });
  });
}
