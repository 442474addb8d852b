/** Whether people were told of each matter once, in order. */

type Matter = { reference: string; what: string; id: number | null };
type Said = { type: string; data: { matters?: Matter[] } };
export type Told =
  | { channel: 'url'; id: string; atMs: number; said: Said }
  | { channel: 'mail'; id: string; atMs: number; said: string };

/** Two messages of a channel are this far apart, but for what a clock rounds. */
const APART_MS = 59_000;

export function verdict(told: readonly Told[], matters: number, killsAtMs: readonly number[]) {
  const broken: string[] = [];
  const figures: Record<string, string> = {};
  for (const channel of ['url', 'mail'] as const) {
    const own = told.filter((one) => one.channel === channel);
    const first = own.filter(({ id }, index) => own.findIndex((one) => one.id === id) === index);
    const repeats = own.filter((one, index) => {
      const before = own.slice(0, index).findLast(({ id }) => id === one.id);
      if (before === undefined) return false;
      const isAfterKill = killsAtMs.some((ms) => ms >= before.atMs && ms <= one.atMs);
      if (!isAfterKill) broken.push(`${channel}: ${one.id} came again without a kill`);
      return true;
    });
    for (const [index, one] of first.entries()) {
      const before = first[index - 1];
      if (before !== undefined && one.atMs - before.atMs < APART_MS) {
        broken.push(`${channel}: ${one.id} came ${Math.round(one.atMs - before.atMs)} ms after the message before`);
      }
    }
    const seen = new Map<string, string[]>();
    for (const { what, reference } of first.flatMap(mattersOf)) {
      const order = reference.replace(/r\d+$/, '');
      const before = seen.get(order) ?? [];
      seen.set(order, [...before, ...(what === 'opened_and_over' ? ['opened', 'over'] : [what])]);
    }
    for (let n = 1; n <= matters; n++) {
      const what = (seen.get(`order-${n}`) ?? []).join(', ');
      // A delivery that comes again, because its answer was lost, has a dead event settled again: a matter of its own.
      if (!/^opened, over(, opened, over)*$/.test(what))
        broken.push(`${channel}: order-${n} was told as: ${what || 'nothing'}`);
    }
    const byMatter = Map.groupBy(first.flatMap(mattersOf), ({ id, reference }) => id ?? reference);
    for (const [id, all] of channel === 'url' ? byMatter : []) {
      const what = all.map((one) => one.what).join(', ');
      if (!/^(opened, over|opened_and_over)$/.test(what)) broken.push(`url: matter ${id} was told as: ${what}`);
    }
    figures[channel] =
      `${first.length} messages told ${seen.size} matters; ${repeats.length} came again, each after a kill`;
  }
  return { broken, figures };
}

function mattersOf(one: Told): Matter[] {
  if (one.channel === 'url') return one.said.data.matters ?? [];
  return [...one.said.matchAll(/^- (?:(Over|Opened, and over)[^:]*: order|Order) (order-\d+(?:r\d+)?)[,:.]/gm)].map(
    ([, state = '', reference = '']) => {
      const what = state === '' ? 'opened' : state === 'Over' ? 'over' : 'opened_and_over';
      return { what, reference, id: null };
    },
  );
}
