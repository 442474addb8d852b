import { describe, expect, it } from 'vitest';
import { chatText, mailText } from '../../src/alert/texts.ts';
import { MATTER_KINDS, MONEY_KINDS } from '../../src/domain/matter.ts';
import { totalMoney } from '../../src/domain/matter_money.ts';
import { mattersMessage } from '../../src/explain/alert_message.ts';
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
  amountMinor: 4_800,
  currency: 'BRL',
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
    expect(opened).toContain(`- Order order-1, 48.00 BRL: ${words}. https://shop.example/ops/orders/order-1`);
    expect(over).toContain(`- Over after 60 s. Order order-1, 48.00 BRL: ${words}.`);
    expect(opened).toContain(MONEY_KINDS.includes(kind) ? '1 matter opened (1 about money)' : '1 matter opened\n');
    const ofNone = chatText(message(entry(1, { kind, orderKey: null, reference: null })));
    expect(ofNone).toContain(`- ${words.charAt(0).toUpperCase()}${words.slice(1)}. https://shop.example/ops/attention`);
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

  it('gives a reference no power over a chat or a mail', () => {
    const hostile = entry(1, { reference: '<!channel> @everyone\r\nBcc: eve@example.com\u202e' });
    const chat = chatText(message(hostile));
    expect(chat).not.toMatch(/[<>]|@everyone|\r|\u202e/);
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
