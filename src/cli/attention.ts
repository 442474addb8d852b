import { UsageError } from './arguments.ts';
import { defineCommand } from './command.ts';
import { count, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';

type AttentionRow = {
  id: string;
  kind: string;
  subject: string;
  reference: string | null;
  detail: string;
  count: number;
  openedAt: string;
  lastAt: string;
};

export const attention = defineCommand({
  name: 'attention',
  positionals: '',
  about: 'list what waits for a person',
  details: [
    'Each says what it is about and what to do. Many end by themselves; docs/states.md says which, and when. A person ends',
    'the others: settled attention end ID --reason TEXT',
    'Orders that are held for a decision about money are only counted here. List them: settled orders list --state held',
  ],
  options: PAGE_OPTIONS,
  async run({ options, server }) {
    const list = { path: '/v1/attention', field: 'attention' };
    const connection = server();
    const { rows, more } = await listRows<AttentionRow>(connection, list, options);
    const { stats } = await connection.get<{ stats: { orders: { held: number } } }>('/v1/stats');
    const { held } = stats.orders;
    const cells = rows.map(({ id, kind, reference, count, openedAt, detail }) => [
      id,
      openedAt,
      kind,
      reference,
      count,
      detail,
    ]);
    const headings = ['id', 'since', 'kind', 'order', 'times', 'detail'];
    return {
      data: { attention: rows, more, held },
      lines: [
        ...table(headings, cells, held === 0 ? 'Nothing waits for a person.' : 'Nothing else waits.'),
        ...moreLine(more),
        ...(held === 0
          ? []
          : [`${count(held, 'order is', 'orders are')} held: settled orders list --state held`]),
      ],
    };
  },
});

export const attentionEnd = defineCommand({
  name: 'attention end',
  positionals: 'ID',
  about: 'end a matter that waits for a person, because it is over or was looked at',
  details: [
    'The reason stands in the history of its order. What settled finds again it raises again.',
    'It ends with 66 where there is no such matter, or it has ended.',
  ],
  examples: ['settled attention end 12 --reason "both events named the same payment"'],
  options: { reason: { value: 'TEXT', about: 'why it is over; needed' } },
  async run({ first: id, options: { reason }, server }) {
    if (reason === undefined) throw new UsageError('`settled attention end` needs --reason TEXT.');
    const path = `/v1/attention/${encodeURIComponent(id)}/end`;
    const answer = await server().post<{ attention: { id: string; endedAt: string } }>(path, { reason });
    return { data: answer, lines: [`Matter ${answer.attention.id} has ended.`] };
  },
});
