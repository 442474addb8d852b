import { bulkCommand } from './bulk.ts';
import { defineCommand } from './command.ts';
import { printable, printableLines, record, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';
import { SINCE, sinceTime } from './since.ts';

/** A notice as the API lists it. */
type NoticeRow = {
  id: string;
  reference: string;
  type: string;
  version: number;
  status: 'pending' | 'leased' | 'done' | 'dead';
  attempt: number;
  createdAt: string;
  dueAt: string | null;
  endedAt: string | null;
  fault: { code: string; message: string } | null;
  answer: { status: number; body: string } | null;
};
type NoticeDetail = NoticeRow & { body: unknown };

const NOTICE_STATUSES = ['pending', 'leased', 'done', 'dead'] as const;

export const noticesList = defineCommand({
  name: 'notices list',
  positionals: '',
  about: 'list what the shop is told, the newest first',
  details: [
    'pending: it waits for its next attempt, or until an earlier notice of its order was told. leased: it is being sent.',
    'done: the shop took it. dead: it was given up after 7 days or because the shop answered 410; settled tells no more of',
    'it by itself. Without SETTLED_SHOP_URL nothing is sent: the shop reads the feed.',
  ],
  examples: ['settled notices list --status dead', 'settled notices list --order order-8001'],
  options: {
    status: { value: 'STATUS', choices: NOTICE_STATUSES, about: 'only notices with this status' },
    order: { value: 'REFERENCE', about: 'only notices of this order' },
    since: SINCE,
    ...PAGE_OPTIONS,
  },
  async run({ options, server }) {
    const { status, order, since } = options;
    const query = { status, reference: order, since: sinceTime(since) };
    const list = { path: '/v1/notices', field: 'notices', query };
    const { rows: notices, more } = await listRows<NoticeRow>(server(), list, options);
    return { data: { notices, more }, lines: [...noticeTable(notices), ...moreLine(more)] };
  },
});

function noticeTable(notices: readonly NoticeRow[]): string[] {
  const rows = notices.map((notice) => [
    notice.id,
    notice.createdAt,
    notice.reference,
    notice.type,
    notice.status,
    notice.attempt,
    notice.fault?.code ?? notice.answer?.status ?? null,
  ]);
  const headings = ['id', 'created', 'order', 'type', 'status', 'attempts', 'result'];
  return table(headings, rows, 'No such notices.');
}

export const noticesShow = defineCommand({
  name: 'notices show',
  positionals: 'ID',
  about: "show one notice: what it says, how often it was tried, and the shop's last answer",
  options: {},
  async run({ first: id, server }) {
    const answer = await server().get<{ notice: NoticeDetail }>(`/v1/notices/${encodeURIComponent(id)}`);
    const { notice } = answer;
    const lines = record([
      ['id', notice.id],
      ['order', notice.reference],
      ['order version', notice.version],
      ['type', notice.type],
      ['created', notice.createdAt],
      ['status', notice.status],
      ['attempts', notice.attempt],
      ['next attempt', notice.dueAt],
      ['ended', notice.endedAt],
      ['shop answered', notice.answer?.status ?? null],
      ['fault', notice.fault === null ? null : `${notice.fault.code}: ${notice.fault.message}`],
    ]);
    const body = JSON.stringify(notice.body, null, 2).split('\n').map(printable);
    const said = notice.answer?.body ? ['', 'The shop answered:', ...printableLines(notice.answer.body)] : [];
    return { data: answer, lines: [...lines, '', ...body, ...said] };
  },
});

export const noticesResend = bulkCommand<NoticeRow>({
  name: 'notices resend',
  about: 'send notices to the shop once more, under the same ids: those named, or all that are selected',
  details: [
    'A shop that keeps the ids of the notices that it has worked on, as it should, is not told twice by it. Where the shop is',
    'well again, --failed sends at once what would be tried within the hour.',
  ],
  examples: [
    'settled notices resend --failed --dry-run',
    'settled notices resend --failed --yes',
    'settled notices resend --order order-8001 --since 2h --yes',
  ],
  one: 'notice',
  action: 'resend',
  done: 'sent again',
  result: 'pending: it is sent now',
  failed: {
    about: 'all that are dead, and those that failed and wait for their next attempt',
    statuses: ['dead', 'pending'],
    is: ({ status, fault, dueAt }) =>
      status === 'dead' || (status === 'pending' && fault !== null && dueAt !== null),
  },
  at: ({ createdAt }) => createdAt,
  table: noticeTable,
});
