import type { CountDocument } from '../api/lists.ts';
import type { NoticeDocument, NoticeWithBody, ShopDocument } from '../api/notices.ts';
import { inARow } from '../explain/shop_status.ts';
import { type Block, printable, verbatim } from '../terminal/output.ts';
import { type Columns, record, table } from '../terminal/table.ts';
import { defineCommand } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import {
  countLine,
  faultWords,
  LIST_OPTIONS,
  listRows,
  moreLine,
  NOTICE_OPTIONS,
  queryOf,
  repeatCommand,
  statusWords,
} from './lists.ts';

/** The commands about notices: what settled tells the shop. */

export const noticesList = defineCommand({
  usage: 'notices list',
  about: 'list what settled tells the shop, the newest first',
  details: [
    'pending: it waits for its next attempt, or until the shop was told an earlier notice of its order.',
    'Those that are being sent at this moment (leased) are shown among the pending ones.',
    'done: the shop took it.',
    'dead: settled gave it up after 7 days, or because the shop answered 410, and does not retry it.',
    'So is news about money that the shop refused, once it took later news about money of the order.',
    'superseded: the shop refused it, and then took news about money of its order, so it is not sent any more.',
    'LAST ANSWER is what the shop said to the last attempt, or why there is no answer;',
    '`settled notices show ID` has the whole answer.',
    'The line below the table says where notices are sent, and whether the shop takes them.',
    'Without SETTLED_SHOP_URL nothing is sent: the shop reads the feed.',
  ],
  examples: ['settled notices list --status dead', 'settled notices list --order order-8001'],
  options: { ...NOTICE_OPTIONS, ...LIST_OPTIONS },
  async run({ options, server }) {
    const query = queryOf(options);
    const connection = server();
    const beingSent = () => (options.status === 'pending' ? listBeingSent(connection, query) : []);
    const before = await beingSent();
    const { rows, more, page } = await listRows<NoticeDocument>(connection, 'notices', query, options);
    const notices = newestFirst([...before, ...rows, ...(await beingSent())]);
    const shop = page.shop as ShopDocument;
    const count = page.count as CountDocument | undefined;
    const lines = [
      ...noticeTable(notices, shop),
      ...countLine(count, 'notice'),
      ...moreLine(more),
      '',
      ...shopLines(shop),
    ];
    return { data: { notices, more, ...(count === undefined ? {} : { count }), shop }, lines };
  },
});

/** Those being sent are few: as many as there are connections to the shop. */
async function listBeingSent(server: ServerApi, query: Query): Promise<NoticeDocument[]> {
  return (await listRows<NoticeDocument>(server, 'notices', { ...query, status: 'leased' }, { all: true })).rows;
}

/** Each notice once, as it was read last: one that was claimed, or given back, between two lists is in several or in one. */
function newestFirst(notices: readonly NoticeDocument[]): NoticeDocument[] {
  const byId = new Map(notices.map((notice) => [notice.id, notice]));
  return [...byId.values()].sort((one, other) => keyOf(other) - keyOf(one));
}

/** Ids begin with the number of the notice: msg_12_… */
function keyOf({ id }: NoticeDocument): number {
  return Number(id.split('_')[1]);
}

/** In the words of `settled doctor`. */
function shopLines(shop: ShopDocument): Block[] {
  if (shop === null) {
    return ['Nothing is sent: SETTLED_SHOP_URL is not set. These notices are for the feed only, which the shop reads.'];
  }
  const { url, failures } = shop;
  const sent = `They are sent to ${url}`;
  if (failures === null) return [sent];
  const failed = inARow({ ...failures, sinceMs: Date.parse(failures.since) });
  return [sent, `The shop takes none: ${failed}. What to do: settled doctor`];
}

function noticeTable(notices: readonly NoticeDocument[], shop: ShopDocument): Block[] {
  const columns: Columns<NoticeDocument> = {
    id: 'id',
    created: 'createdAt',
    order: 'reference',
    type: 'type',
    status: (notice) => (notice.superseded ? 'superseded' : statusWords(notice, 'being sent')),
    attempts: 'attempt',
    'last answer': lastAnswer,
    next: (notice) => (notice.status !== 'pending' ? null : shop === null ? 'feed only' : nextAttempt(notice, notices)),
  };
  return table(notices, columns, { nothing: 'No such notices.' });
}

const ANSWER_COLUMNS = 40;

/** What the shop answered last, on one line; why there was no answer; null before the first attempt. */
function lastAnswer({ answer, fault }: NoticeDocument): string | null {
  if (answer === null) return fault?.code ?? null;
  const said = printable(`${answer.status} ${answer.body.replace(/\s+/g, ' ')}`.trim());
  const characters = [...said];
  return characters.length <= ANSWER_COLUMNS ? said : `${characters.slice(0, ANSWER_COLUMNS - 1).join('')}…`;
}

/** The time of the next attempt, or what it waits for: settled sends the notices of an order one at a time. */
function nextAttempt({ dueAt, reference }: NoticeDocument, shown: readonly NoticeDocument[]): string {
  if (dueAt !== null) return dueAt;
  const turn = shown.find(
    (other) =>
      other.reference === reference &&
      (other.status === 'leased' || (other.status === 'pending' && other.dueAt !== null)),
  );
  return turn === undefined ? 'after another one' : `waits for ${turn.id}`;
}

export const noticesShow = defineCommand({
  usage: 'notices show ID',
  about: "show one notice: its content, the number of attempts, and the shop's last answer",
  examples: ['settled notices show msg_12_0aae395a-25ca-41e5-9885-56c31030382d'],
  details: ['After a notice was sent again, only the attempts since then count.'],
  async run({ first, server }) {
    const answer = await server().get<{ notice: NoticeWithBody }>(`/v1/notices/${encodeURIComponent(first)}`);
    const { notice } = answer;
    const lines = record({
      id: notice.id,
      order: notice.reference,
      'order version': notice.version,
      type: notice.type,
      created: notice.createdAt,
      status: notice.superseded ? 'superseded' : statusWords(notice, 'being sent'),
      attempts: notice.attempt,
      'next attempt': notice.dueAt,
      ended: notice.endedAt,
      'shop answered': notice.answer?.status ?? null,
      fault: faultWords(notice),
    });
    const body = verbatim(JSON.stringify(notice.body, null, 2));
    const said = notice.answer?.body ? ['', 'The shop answered:', verbatim(notice.answer.body)] : [];
    return { data: answer, lines: [...lines, '', body, ...said] };
  },
});

export const noticesResend = repeatCommand({
  name: 'notices resend',
  about: 'send notices to the shop again, with the same ids',
  details: [
    'A shop that follows docs/integrate.md does nothing twice.',
    'A notice that waits for its next attempt is sent at once.',
    'A notice that the shop took, or that settled gave up, begins anew:',
    'its attempts count from 1 again, and its 7 days begin again.',
  ],
  examples: ['settled notices resend msg_12_0aae395a-25ca-41e5-9885-56c31030382d'],
  one: 'notice',
  action: 'resend',
  done: 'sent again',
  result: ({ waitsFor }) => (waitsFor == null ? 'pending: it is sent now' : `pending: it is sent after ${waitsFor}`),
});
