import { describe, expect, it } from 'vitest';
import { chatText, mailText } from '../../src/alert/texts.ts';
import { MATTER_KINDS, MONEY_KINDS } from '../../src/domain/matter.ts';
import { totalMoney } from '../../src/domain/matter_money.ts';
import type { HoldReason } from '../../src/domain/order.ts';
import { digestMessage, mattersMessage } from '../../src/explain/alert_message.ts';
import { matterWords } from '../../src/explain/attention_sentences.ts';
import type { AlertEntry } from '../../src/store/verbs/alerts.ts';

const READER = {
  consoleUrl: 'https://shop.example/ops',
  badge: null,
  showsCustomers: false,
  unlisted: [],
  nowMs: 90_000,
};
const NOTHING = { groups: [], money: totalMoney([], []) };

const entry = (key: number, over: Partial<AlertEntry> = {}): AlertEntry => ({
  key,
  what: 'opened',
  atMs: 1_000 * key,
  id: key,
  kind: 'hold',
  openedAtMs: 1_000 * key,
  reason: null,
  orderKey: key,
  reference: `order-${key}`,
  sums: [{ currency: 'BRL', asked: 4_800n, balance: 2_880n }],
  customerName: null,
  customerEmail: null,
  ...over,
});

const message = (...entries: AlertEntry[]) => mattersMessage(entries, NOTHING, READER);

describe('a message to people', () => {
  it.each(MATTER_KINDS)('says of %s what the console says, when it opens and when it is over', (kind) => {
    const words = matterWords(kind);
    const [opened = '', over = ''] = ['opened', 'over'].map((what) =>
      chatText(message(entry(1, { kind, what: what as AlertEntry['what'], atMs: 61_000 }))),
    );
    const order = 'order-1, balance 28.80 BRL, asked 48.00 BRL';
    expect(opened).toContain(`- Order ${order}: ${words}. https://shop.example/ops/orders/order-1`);
    expect(over).toContain(`- Over after 60 s: order ${order}. It was: ${words}.`);
    expect(over).toContain('settled: 1 over\n');
    expect(opened).toContain(MONEY_KINDS.includes(kind) ? '1 matter opened (1 about money)' : '1 matter opened\n');
    const ofNone = chatText(message(entry(1, { kind, orderKey: null, reference: null })));
    expect(ofNone).toContain(`- ${words.charAt(0).toUpperCase()}${words.slice(1)}. https://shop.example/ops/attention`);
  });

  it.each<[string, AlertEntry['sums'], string]>([
    ['nothing', [{ currency: 'BRL', asked: 4_800n, balance: 0n }], ', asked 48.00 BRL'],
    ['something else', [{ currency: 'BRL', asked: 4_800n, balance: null }], ', balance not readable, asked 48.00 BRL'],
    [
      'another currency',
      [
        { currency: 'BRL', asked: 4_800n, balance: 0n },
        { currency: 'USD', asked: 0n, balance: 500n },
      ],
      ', balance 5.00 USD, asked 48.00 BRL',
    ],
    ['what is forgotten', [], ''],
  ])('says what an order holds that got %s', (_what, sums, money) => {
    expect(chatText(message(entry(1, { sums })))).toContain(`- Order order-1${money}: ${matterWords('hold')}.`);
  });

  it('sums of a day say what must go back, not what the orders ask for, in words and for programs', () => {
    const group = (kind: 'hold' | 'refund_due' | 'duplicate_payment', reason: HoldReason | null, balance: bigint) => {
      const sums = [{ currency: 'BRL', asked: 4_800n, balance, reported: 0n }];
      return { kind, reason, count: 1, oldestAtMs: 0, sums };
    };
    const held = [group('hold', 'amount_mismatch', 1_000n), group('hold', 'unconfirmed', 0n)];
    const groups = [...held, group('refund_due', null, 2_880n), group('duplicate_payment', null, 9_600n)];
    const paid = [{ currency: 'BRL', orders: 2, amountMinor: 9_600n, told: 1 }];
    const of = { ...READER, period: 'from then to now', canTell: true };
    const { lines, data } = digestMessage(paid, { ...NOTHING, groups }, of);
    expect(lines.map(({ words }) => words)).toEqual([
      'Paid: 2 orders, asking for 96.00 BRL',
      'Told: the shop took the news of 1 of them',
      'Held: 2 orders, balance 10.00 BRL, asked 96.00 BRL',
      'Owed back: 1 order, balance 28.80 BRL, asked 48.00 BRL',
      'Paid more than once: 1 order, balance 96.00 BRL, asked 48.00 BRL',
    ]);
    const sum = (orders: number, balance: string, asked: string) => ({
      orders,
      sums: [{ currency: 'BRL', asked, balance }],
    });
    expect(data).toEqual({
      paid: { orders: 2, sums: [{ currency: 'BRL', asked: '96.00' }] },
      told: 1,
      held: sum(2, '10.00', '96.00'),
      owedBack: sum(1, '28.80', '48.00'),
      paidMoreThanOnce: sum(1, '96.00', '48.00'),
      waiting: 4,
    });
  });

  it('lists money first, and names each in the mail and in the data; a chat gets as many as it takes', () => {
    const many = Array.from({ length: 400 }, (_, n) => entry(n + 1, { kind: n === 399 ? 'hold' : 'event_dead' }));
    const made = message(...many);
    const chat = chatText(made);
    expect(chat.length).toBeLessThanOrEqual(2_000);
    expect(chat).toMatch(/^settled: 400 matters opened \(1 about money\)\n- Order order-400, .*\n- and \d+ more\n/s);
    const mail = mailText(made);
    expect(mail.split('\n').filter((line) => line.length > 60 && !line.startsWith('  https://'))).toEqual([]);
    expect(new Set(mail.match(/order-\d+,/g)).size).toBe(400);
    expect((made.data as { matters: object[] }).matters).toHaveLength(400);
  });

  it('names at least the first in a chat, and breaks a long reference in a mail', () => {
    const long = entry(1, { reference: '😀'.repeat(128) });
    const chat = chatText(message(long, entry(2)));
    expect(chat).toMatch(/\n- Order 😀{128}, [^\n%]*\n- and 1 more\n/su);
    expect(chat.length).toBeLessThanOrEqual(2_000);
    const mail = mailText(message(entry(1, { reference: 'r'.repeat(128) })));
    expect(mail.split('\n').filter((line) => line.length > 60 && !line.startsWith('  https://'))).toEqual([]);
    expect(mail.replace(/\s/g, '')).toContain('r'.repeat(128));
  });

  it('gives a reference no power over a chat or a mail', () => {
    const hostile = entry(1, {
      reference: '<!channel> @everyone [here](https://eve.example)\r\nBcc: eve@example.com\u202e',
    });
    const chat = chatText(message(hostile));
    expect(chat).not.toMatch(/[<>]|@everyone|\]\(|\r|\u202e/);
    expect(chat.split('\n')).toHaveLength(3);
    expect(mailText(message(hostile))).not.toMatch(/\r|\u202e|^Bcc/m);
  });

  it('names both openings of an order that was held twice', () => {
    const hold = (key: number, what: AlertEntry['what']) =>
      entry(key, { id: null, orderKey: 7, what, openedAtMs: null });
    const { data } = message(hold(1, 'opened'), hold(2, 'over'), hold(3, 'opened'));
    expect((data as { matters: { what: string }[] }).matters.map(({ what }) => what)).toEqual([
      'opened_and_over',
      'opened',
    ]);
  });
});
