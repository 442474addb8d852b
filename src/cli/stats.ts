import { defineCommand } from './command.ts';
import { record } from './layout.ts';

type Stats = {
  orders: Record<string, number>;
  events: Record<string, number>;
  notices: Record<string, number>;
  holds: number;
  attention: number;
  checks: number;
  rejections: number;
  lagSeconds: number;
};

export const stats = defineCommand({
  name: 'stats',
  positionals: '',
  about: 'count orders, events and notices by state, and what waits',
  options: {},
  async run({ server }) {
    const answer = await server().get<{ stats: Stats }>('/v1/stats');
    const { orders, events, notices, holds, attention, checks, rejections, lagSeconds } = answer.stats;
    const lines = record([
      ...tally('orders', orders),
      ...tally('events', events),
      ...tally('notices', notices),
      ['holds open', holds],
      ['attention open', attention],
      ['checks waiting', checks],
      ['deliveries refused', rejections],
      ['lag of settlement', `${lagSeconds} s`],
    ]);
    return { data: answer, lines };
  },
});

function tally(what: string, counts: Record<string, number>): (readonly [string, number])[] {
  return Object.entries(counts).map(([name, n]) => [`${what} ${name}`, n] as const);
}
