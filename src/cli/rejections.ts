import { defineCommand } from './command.ts';
import { printable, table } from './layout.ts';
import { listRows, moreLine, PAGE_OPTIONS } from './pages.ts';

type RejectionRow = {
  id: string;
  reference: string;
  reason: string;
  count: number;
  firstAt: string;
  lastAt: string;
  /** Null if nothing was found out beside the reason. */
  diagnosis: { answer: string } | null;
};

export const rejections = defineCommand({
  name: 'rejections',
  positionals: '',
  about: 'list the deliveries that were refused as not authentic, by order and reason',
  details: [
    'Below a line stands what the last such delivery turned out to be, if settled found that out.',
    'docs/errors.md explains the reasons; `settled verify` finds the cause of a captured delivery.',
  ],
  examples: ['settled rejections --order order-8001'],
  options: { order: { value: 'REFERENCE', about: 'only those of this order' }, ...PAGE_OPTIONS },
  async run({ options, server }) {
    const list = { path: '/v1/rejections', field: 'rejections', query: { reference: options.order } };
    const { rows, more } = await listRows<RejectionRow>(server(), list, options);
    const cells = rows.map(({ reference, reason, count, firstAt, lastAt }) => [
      reference,
      reason,
      count,
      firstAt,
      lastAt,
    ]);
    const headings = ['order', 'reason', 'times', 'first', 'last'];
    const [heading = '', ...lines] = table(headings, cells, 'No delivery was refused.');
    const told = lines.flatMap((line, at) => {
      const diagnosis = rows[at]?.diagnosis ?? null;
      return diagnosis === null ? [line] : [line, `  ${printable(diagnosis.answer)}`];
    });
    return { data: { rejections: rows, more }, lines: [heading, ...told, ...moreLine(more)] };
  },
});
