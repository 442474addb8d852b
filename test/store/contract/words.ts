import { beforeEach, describe, expect, it } from 'vitest';
import { orderDocument } from '../../../src/domain/notice.ts';
import type { Order } from '../../../src/domain/order.ts';
import { readSearch } from '../../../src/domain/search.ts';
import { type Link, said, type World, type Worlds } from './world.ts';

const DAY_MS = 86_400_000;
const ANA = { name: 'Ana Conceição', email: 'Ana.Lima@Example.com' };

export function wordsContract({ shared, fresh }: Worlds): void {
  let world: World;

  const requestOf = (title: string) => JSON.stringify({ title });
  const open = (reference: string, title: string, customer: typeof ANA | null = null): Promise<Link> =>
    world.intend({ reference, request: requestOf(title), customer });
  async function found(text: string): Promise<string[]> {
    const { rows } = await world.store.listOrders({ limit: 100, search: readSearch(text) });
    return rows.map(({ value }) => value.reference).sort();
  }
  async function expectFound(cases: readonly (readonly [string, string[]])[]): Promise<void> {
    for (const [text, references] of cases) expect([text, await found(text)]).toEqual([text, references]);
  }
  const order = async ({ reference }: Link) => (await world.store.findOrder(reference)) as Order;
  const wordsOf = async ({ linkKey }: Link) => {
    const rows = await world.run(`SELECT word FROM order_word
      WHERE order_key = (SELECT order_key FROM link WHERE key = ${linkKey}) ORDER BY word`);
    return rows.map(({ word }) => word);
  };
  const drop = () => world.store.dropCustomers({ untilMs: world.nowMs - DAY_MS, limit: 100, sendsNotices: false });
  async function noticed(link: Link): Promise<unknown[]> {
    const { notices } = await world.store.readFeed({ after: 0, limit: 1000, bytesMax: 100_000_000 });
    return notices
      .map(({ body }) => JSON.parse(body).data.order as ReturnType<typeof orderDocument>)
      .filter(({ reference }) => reference === link.reference)
      .map(({ customer }) => customer);
  }

  describe('words of an order find it', () => {
    it('whole or by their beginning, in any case and order, with or without accents, if it has them all', async () => {
      world = await fresh();
      await open('camisa-1006', 'Camisa São João, tamanho G');
      await open('camisa-10061', 'Camisa azul', ANA);
      await world.newLink({ reference: 'pedido/1006', customer: { name: 'Bia', email: null } });
      await expectFound([
        ['1006', ['camisa-1006', 'camisa-10061', 'pedido/1006']],
        ['10061', ['camisa-10061']],
        ['CAMISA', ['camisa-1006', 'camisa-10061']],
        ['sao joão', ['camisa-1006']],
        ['João 1006', ['camisa-1006']],
        ['joão azul', []],
        ['amis', []],
        // Of fewer than 3 characters: whole words alone.
        ['g', ['camisa-1006']],
        ['az', []],
        ['az camisa', []],
        ['azu', ['camisa-10061']],
        ['conceicao', ['camisa-10061']],
        ['Conceição, Ana', ['camisa-10061']],
        ['ANA.LIMA@example.com', ['camisa-10061']],
        ['ana azul', ['camisa-10061']],
        ['bia', ['pedido/1006']],
        ['!?', []],
      ]);
    });

    it('are meant whole if too many orders have such a beginning, and bury no order that is named exactly', async () => {
      world = await fresh();
      const first = await open('first', 'Vela orde');
      await world.run(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
        INSERT INTO orders (reference, amount_minor, currency, state, created_at_ms, updated_at_ms)
        SELECT 'no ' || i, 100, 'BRL', 'awaiting_payment', ${world.nowMs}, ${world.nowMs} FROM n`);
      const all = "FROM orders WHERE reference LIKE 'no %'";
      for (const word of ['order', 'velas'])
        await world.run(`INSERT INTO order_word (order_key, word, personal) SELECT key, '${word}', key < 0 ${all}`);
      await world.run("DELETE FROM order_word WHERE word = 'velas' AND order_key = (SELECT max(key) FROM orders)");
      const last = await open('order', 'Mesa');
      const listed = async (text: string) => {
        const page = { limit: 2, isCounted: true, search: readSearch(text) };
        const { rows, count } = await world.store.listOrders(page);
        return [rows.map(({ value }) => value.reference), count];
      };
      const many = { n: 1000, isMore: true };
      expect(await listed('ord')).toEqual([['order', 'no 2100'], many]);
      expect(await listed('orde')).toEqual([[last.reference, first.reference], { n: 2, isMore: false }]);
      expect(await listed('velas order')).toEqual([['no 2099', 'no 2098'], many]);
      expect(await listed('velas mesa')).toEqual([[], { n: 0, isMore: false }]);
      expect(await listed('order')).toEqual([[last.reference], { n: 1, isMore: false }]);
    });

    it('are so many, of so many characters, and one only once', async () => {
      world = shared();
      const title = Array.from({ length: 40 }, (_, n) => `word${n}`).join(' ');
      const many = await open(world.name('many'), `${title} ${title}`);
      expect(await wordsOf(many)).toHaveLength(24);
      const long = 'x'.repeat(60);
      const one = await open(`${long}-${world.name('long')}`, 'A chair', {
        name: 'a b c d e f g h i j k l m',
        email: 'a@b',
      });
      expect((await wordsOf(one)).filter((word) => String(word).startsWith('xxx'))).toEqual(['x'.repeat(40)]);
      expect(await found(long)).toEqual([one.reference]);
      // The reference, the title and 12 words of the customer, of which the title has one.
      expect(await wordsOf(one)).toHaveLength(3 + 1 + 11 + 1);
    });

    it('are written when it opens, and neither by a repeated request nor when money comes', async () => {
      world = shared();
      const link = await world.openNew({ request: requestOf('A lamp'), customer: ANA });
      const before = await wordsOf(link);
      await world.store.openIntent(
        world.intent({ reference: link.reference, request: requestOf('A lamp'), customer: ANA }),
      );
      await world.answer(link, [said('completed')]);
      expect(await wordsOf(link)).toEqual(before);
      expect(before).toEqual(expect.arrayContaining(['ana', 'conceicao', 'example', 'lamp', 'lima']));
    });

    it('go with an order that the service refuses, as its customer does', async () => {
      world = shared();
      const refused = await open(world.name('refused'), 'A lamp', ANA);
      const { attempt } = await world.claimOpening(refused);
      const count = async () =>
        (await world.run('SELECT (SELECT count(*) FROM order_word) + (SELECT count(*) FROM order_customer) AS n'))[0]
          ?.n;
      const words = (await wordsOf(refused)).length;
      const before = Number(await count());
      await world.store.closeOpening({ linkKey: refused.linkKey, attempt, nowMs: world.nowMs });
      expect(Number(await count())).toBe(before - words - 1);
    });
  });

  describe('the customer whom the shop names', () => {
    beforeEach(async () => {
      world = await fresh();
    });

    it('stands in the order and its notices until it is dropped, then neither there nor among its words', async () => {
      const link = await world.openNew({ reference: 'lamp-1', request: requestOf('A lamp for Ana'), customer: ANA });
      await world.answer(link, [said('pending')]);
      world.tick(DAY_MS / 2);
      await world.answer(link, [said('completed')]);
      expect(orderDocument(await order(link)).customer).toEqual(ANA);
      expect(await noticed(link)).toEqual([ANA, ANA]);
      world.tick(DAY_MS / 2 - 10_000);
      expect(await drop()).toEqual({ dropped: 0, isMore: false });
      world.tick(10_000);
      expect(await drop()).toEqual({ dropped: 1, isMore: false });
      expect(orderDocument(await order(link)).customer).toBeNull();
      expect((await world.timeline(link)).order.customer).toBeNull();
      expect(await noticed(link)).toEqual([null, null]);
      await world.answer(link, [said('refunded')]);
      expect(await noticed(link)).toEqual([null, null, null]);
      // The title has this word too, and no customer is told by it.
      expect(await wordsOf(link)).toEqual(['1', 'a', 'ana', 'for', 'lamp']);
      await expectFound([
        ['conceicao', []],
        ['lima', []],
        ['ana lamp', ['lamp-1']],
      ]);
      expect(await drop()).toEqual({ dropped: 0, isMore: false });
    });

    it('leaves at its own time, beside one whom the service names', async () => {
      const details = { paymentId: 'pay_1', customerName: 'Rui', customerEmail: null, method: 'PIX' };
      const nothing = { installments: null, totalBrlMinor: null, createdAtMs: null, completedAtMs: null };
      const link = await world.openNew({ customer: ANA });
      world.tick(DAY_MS / 2);
      await world.answer(link, [said('completed')], {
        job: { details: [{ ...details, ...nothing, availableAtMs: null }] },
      });
      const both = async () => {
        const { customer, payment } = orderDocument(await order(link));
        return [customer?.name, payment?.customer?.name];
      };
      expect(await both()).toEqual([ANA.name, 'Rui']);
      world.tick(DAY_MS / 2);
      await drop();
      expect(await both()).toEqual([undefined, 'Rui']);
      expect(await noticed(link)).toEqual([null]);
      world.tick(DAY_MS / 2);
      expect(await drop()).toMatchObject({ dropped: 1 });
      expect(await both()).toEqual([undefined, undefined]);
    });

    it('stays in a notice that is owed, until the shop has taken it', async () => {
      const link = await world.openNew({ customer: ANA });
      await world.answer(link, [said('completed')]);
      world.tick(DAY_MS);
      await world.store.dropCustomers({ untilMs: world.nowMs - DAY_MS, limit: 100, sendsNotices: true });
      expect([await noticed(link), orderDocument(await order(link)).customer]).toEqual([[ANA], null]);
      world.tick(3_600_000);
      expect(await drop()).toEqual({ dropped: 0, isMore: false });
      expect(await noticed(link)).toEqual([null]);
    });

    it.each([
      ['the same', ANA, 'same'],
      ['nobody', null, 'same'],
      ['a part', { name: ANA.name, email: null }, 'same'],
      ['another name', { ...ANA, name: 'Bia' }, 'conflict'],
      ['another address', { ...ANA, email: 'bia@example.com' }, 'conflict'],
    ])('named again as %s, by whichever door: %s', async (_, customer, outcome) => {
      const again = async (reference: string) =>
        (await world.store.openIntent(world.intent({ reference, request: requestOf('A lamp'), customer }))).outcome;
      const link = await open('lamp-1', 'A lamp', ANA);
      const registered = await world.newLink({ reference: 'own-1', customer: ANA });
      expect(await again('lamp-1')).toBe(outcome);
      expect((await world.register({ reference: 'own-1', customer })).outcome).toBe(
        outcome === 'same' ? 'same' : 'reference_conflict',
      );
      expect([(await order(link)).customer, (await order(registered)).customer]).toEqual([ANA, ANA]);
      // What settled has dropped differs from nothing.
      world.tick(DAY_MS);
      await drop();
      expect(await again('lamp-1')).toBe('same');
      expect((await order(link)).customer).toBeNull();
    });
  });
}
