import { defineCommand } from './command.ts';
import { table } from './layout.ts';
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
  details: ['Held orders are listed by: settled orders list --state held'],
  options: PAGE_OPTIONS,
  async run({ options, server }) {
    const list = { path: '/v1/attention', field: 'attention' };
    const { rows, more } = await listRows<AttentionRow>(server(), list, options);
    const cells = rows.map(({ kind, reference, count, openedAt, detail }) => [
      openedAt,
      kind,
      reference,
      count,
      detail,
    ]);
    const headings = ['since', 'kind', 'order', 'times', 'detail'];
    return {
      data: { attention: rows, more },
      lines: [...table(headings, cells, 'Nothing waits for a person.'), ...moreLine(more)],
    };
  },
});
