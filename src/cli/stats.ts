import { defineCommand } from './command.ts';
import { record } from './layout.ts';

type Stats = {
  orders: Record<string, number>;
  events: Record<string, number>;
  notices: Record<string, number>;
  matters: { kind: string; reason: string | null; count: number }[];
  checks: number;
  openings: Record<string, number>;
  drift: number;
  api: { slotsInUse: number; pausedUntil: string | null };
  rejections: number;
  lagSeconds: number;
  noticesLagSeconds: number | null;
};

export const stats = defineCommand({
  name: 'stats',
  positionals: '',
  about: 'count orders, events and notices by state, and what waits',
  details: ['docs/operations.md says which of these to watch. Programs that watch read /metrics.'],
  options: {},
  async run({ server }) {
    const answer = await server().get<{ stats: Stats }>('/v1/stats');
    const { orders, events, notices, openings, matters, ...rest } = answer.stats;
    const { checks, drift, api, rejections, lagSeconds, noticesLagSeconds } = rest;
    const lines = record([
      ...tally('orders', orders),
      ...tally('events', events),
      ...tally('notices', notices, 'being sent'),
      ...tally('openings', openings),
      ...matters.map(
        ({ kind, reason, count }) =>
          [`needs a person: ${reason === null ? kind : `${kind}, ${reason}`}`, count] as const,
      ),
      ...(matters.length === 0 ? [['needs a person', 'nothing'] as const] : []),
      ['checks waiting', checks],
      ['disagreements with the service (drift)', drift],
      ['API slots in use', api.slotsInUse],
      ...(api.pausedUntil === null ? [] : [['API paused until', api.pausedUntil] as const]),
      ['deliveries to known links refused', rejections],
      ['lag of settlement', `${lagSeconds} s`],
      ['lag of notices', noticesLagSeconds === null ? 'no callback' : `${noticesLagSeconds} s`],
    ]);
    return { data: answer, lines };
  },
});

function tally(what: string, counts: Record<string, number>, leased = 'in work'): (readonly [string, number])[] {
  return Object.entries(counts).map(([name, n]) => [`${what} ${name === 'leased' ? leased : name}`, n] as const);
}
