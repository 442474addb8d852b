import type { NoticeDocument, NoticeWithBody, ShopDocument } from '../api/notices.ts';
import { inARow } from '../explain/shop_status.ts';
import { type Block, printable, verbatim } from '../terminal/output.ts';
import { record } from '../terminal/table.ts';
import { defineCommand } from './command.ts';
import { faultWords, listCommand, NOTICE_OPTIONS, repeatCommand, statusWords } from './lists.ts';

/** The commands about notices: what settled tells the shop. */

export const noticesList = listCommand<NoticeDocument>({
  usage: 'notices list',
  about: 'list what settled tells the shop, the newest first',
  details: [
    'pending: it waits for its next attempt, or until the shop was told an earlier notice of its order.',
    'leased (being sent): settled sends it at this moment. done: the shop took it.',
    'dead: settled gave it up after 7 days, or because the shop answered 410, and does not retry it.',
    'So is news about money that the shop refused, once it took later news about money of the order.',
    'superseded: the shop refused it, and then took news about money of its order, so it is not sent any more.',
    'LAST ANSWER is what the shop said to the last attempt, or why there is no answer;',
    '`settled notices show ID` has the whole answer.',
    'The line below the table says where notices are sent, and whether the shop takes them.',
    'Without SETTLED_SHOP_URL nothing is sent: the shop reads the feed.',
  ],
  examples: ['settled notices list --status dead', 'settled notices list --order order-8001'],
  options: NOTICE_OPTIONS,
  list: 'notices',
  nothing: 'No such notices.',
  columns: (_, { shop }) => ({
    id: 'id',
    created: 'createdAt',
    order: 'reference',
    type: 'type',
    status: statusWords,
    attempts: 'attempt',
    'last answer': lastAnswer,
    // settled sends the notices of an order one at a time.
    next: ({ status, dueAt }) =>
      status !== 'pending' ? null : shop === null ? 'feed only' : (dueAt ?? 'after an earlier one'),
  }),
  after: ({ shop }) => ['', ...shopLines(shop as ShopDocument)],
});

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

const ANSWER_COLUMNS = 40;

/** What the shop answered last, on one line; why there was no answer; null before the first attempt. */
function lastAnswer({ answer, fault }: NoticeDocument): string | null {
  if (answer === null) return fault?.code ?? null;
  const said = printable(`${answer.status} ${answer.body.replace(/\s+/g, ' ')}`.trim());
  const characters = [...said];
  return characters.length <= ANSWER_COLUMNS ? said : `${characters.slice(0, ANSWER_COLUMNS - 1).join('')}…`;
}

export const noticesShow = defineCommand({
  usage: 'notices show ID',
  about: "show one notice: its content, the number of attempts, and the shop's last answer",
  examples: ['settled notices show msg_12_0aae395a-25ca-41e5-9885-56c31030382d'],
  details: ['After a notice was sent again, only the attempts since then count.'],
  async run({ first, server }) {
    const answer = await server().get<{ notice: NoticeWithBody }>(`/v1/notices/${encodeURIComponent(first)}`);
    const { notice } = answer;
    const { body: _, ...fields } = notice;
    const status = statusWords(notice);
    const lines = record({ ...fields, status, answer: notice.answer?.status ?? null, fault: faultWords(notice) });
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
