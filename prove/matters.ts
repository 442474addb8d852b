import { parseArgs } from 'node:util';
import type { MatterPage } from '../src/store/verbs/attention_list.ts';
import { fillingStatements } from '../test/support/many_matters.ts';
import {
  ENGINES,
  type Fill,
  type FilledStore,
  quantile,
  timesLine,
  timesOf,
  withFilledStore,
} from './filled_stores.ts';

/** `npm run prove:matters`: how long the list of what needs a person takes on a large store, on both engines. */

const HELP = `npm run prove:matters -- [options]

  --orders N    orders in the store (1000000)
  --matters N   open matters (10000)
  --rounds N    repetitions of each question (40)
`;

/** The longest median of a question's rounds. */
const ANSWER_MS_MAX = 100;

const QUESTIONS: Readonly<Record<string, Partial<MatterPage>>> = {
  'the first page': {},
  'the question of doctor': { limit: 0 },
  'due refunds': { kind: 'refund_due' },
  'of cancelled orders': { state: 'cancelled' },
};

async function measure({ engine, open }: FilledStore, rounds: number): Promise<boolean> {
  let isProved = true;
  const store = await open();
  const { rows } = await store.listMatters(asking({ limit: 1_000 }));
  const questions = { ...QUESTIONS, 'a page in the middle': { after: rows.at(-1) ?? null } };
  for (const [name, page] of Object.entries(questions)) {
    const { times, first } = await timesOf(rounds, () => store.listMatters(asking(page)));
    const median = quantile(times, 0.5);
    process.stdout.write(timesLine(engine, name, [median, times.at(-1) ?? 0, first]));
    isProved &&= median <= ANSWER_MS_MAX;
  }
  await store.close();
  return isProved;
}

function asking(page: Partial<MatterPage>): MatterPage {
  return { limit: 51, after: null, kind: null, state: null, ...page };
}

const { values } = parseArgs({
  options: {
    orders: { type: 'string', default: '1000000' },
    matters: { type: 'string', default: '10000' },
    rounds: { type: 'string', default: '40' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) process.stdout.write(HELP);
else {
  const matters = Number(values.matters);
  const many = { orders: Number(values.orders), matters, ended: 10 * matters };
  const rounds = Number(values.rounds);
  process.stdout.write(`${many.orders} orders, ${matters} open matters; median, slowest and first of ${rounds}\n`);
  const fill: Fill = (filling) => fillingStatements(many, filling);
  const proved: boolean[] = [];
  for (const engine of ENGINES) proved.push(await withFilledStore(engine, fill, (filled) => measure(filled, rounds)));
  const isProved = proved.every((one) => one);
  process.stdout.write(isProved ? `proved: every median is at most ${ANSWER_MS_MAX} ms\n` : 'NOT proved\n');
  process.exitCode = isProved ? 0 : 1;
}
