import type { OrderDocument } from '../domain/notice.ts';
import { defineCommand } from './command.ts';
import { printable } from './layout.ts';

type Explained = {
  order: OrderDocument;
  answer: string;
  entries: { at: string; kind: string; summary: string; details: string[] }[];
  next: string[];
};

export const why = defineCommand({
  name: 'why',
  positionals: 'ORDER',
  about: 'say why an order stands where it stands, how it came there, and what happens next',
  details: [
    'First the answer; then everything that is known of the order, in order of time; then what happens by itself from here',
    'on, and what a person should do.',
  ],
  options: {},
  async run({ first: reference, server }) {
    const path = `/v1/orders/${encodeURIComponent(reference)}/timeline`;
    const explained = await server().get<Explained>(path);
    const kinds = Math.max(...explained.entries.map(({ kind }) => kind.length), 0);
    const timeline = explained.entries.flatMap(({ at, kind, summary, details }) => [
      `  ${at}  ${kind.padEnd(kinds)}  ${printable(summary)}`,
      ...details.map((detail) => `${' '.repeat(at.length + kinds + 8)}${printable(detail)}`),
    ]);
    return {
      data: explained,
      lines: [
        printable(explained.answer),
        '',
        'What happened:',
        ...timeline,
        '',
        'What happens next:',
        ...explained.next.map((line) => `  ${printable(line)}`),
      ],
    };
  },
});
