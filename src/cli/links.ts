import type { StatsDocument } from '../api/admin.ts';
import type { EventDocument } from '../api/events.ts';
import { amountIn } from '../domain/money.ts';
import type { OrderDocument } from '../domain/notice.ts';
import { inNumber, shellWord, wasOrWere } from '../explain/glossary.ts';
import { type Report, readGivenFile } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { type Block, shownLines } from '../terminal/output.ts';
import { openProgress, type Progress } from '../terminal/process.ts';
import { type Columns, record, table } from '../terminal/table.ts';
import { type Clock, inWords, stayAlive } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { Query, ServerApi } from './connection.ts';
import { EXIT } from './exit.ts';

/** The commands about links: those that you make at the service yourself, and asking the service about every link. */

type LinkAnswer = { link: { id: string | null; webhookUrl: string; webhookSecret?: string }; order: OrderDocument };

const MONEY = {
  amount: { value: 'AMOUNT', needed: true, about: 'what the order costs, like 100.50' },
  currency: { value: 'CODE', about: 'ISO 4217, like BRL; the configured currency if left out' },
} as const;

/** Options by which `readSecret` is given a link's signing secret. */
export const SECRET_OPTIONS = {
  'secret-file': { value: 'FILE', about: "a file that holds the link's webhookSecret" },
  secret: { value: 'SECRET', about: "the link's webhookSecret" },
} as const;

export const linksAdd = defineCommand({
  usage: 'links add REFERENCE',
  about: 'register a payment link that exists, bind the id of a reserved one, or correct a signing secret',
  details: [
    'A secret on the command line can be seen by other users of the machine: prefer --secret-file.',
    'A reserved link keeps its own secret, so binding its id needs none.',
  ],
  examples: ['settled links add order-8001 --amount 100.00 --id pl_8001 --secret-file secret.txt'],
  options: {
    ...MONEY,
    id: {
      value: 'ID',
      needed: 'To get a webhookUrl for a link that you have not made yet: settled links reserve',
      about: "the link's id at the service",
    },
    ...SECRET_OPTIONS,
  },
  async run({ first: reference, options, server }) {
    const { amount, currency, id } = options;
    const body = { reference, amount, currency, id, webhookSecret: readSecret(options) };
    const answer = await server().post<LinkAnswer>('/v1/links', body);
    return report(answer, `Link ${answer.link.id} belongs to order ${answer.order.reference}.`);
  },
});

/** A signing secret from a file, without the line end that files have, or from the command line. */
export function readSecret(options: { secret?: string; 'secret-file'?: string }): string | undefined {
  const { secret, 'secret-file': file } = options;
  if (file === undefined) return secret;
  if (secret !== undefined) throw new UsageError('--secret and --secret-file are both given: give one of them.');
  const text = readGivenFile('secret-file', file).toString('utf8');
  return text.replace(/\r?\n$/, '');
}

export const linksReserve = defineCommand({
  usage: 'links reserve REFERENCE',
  about: 'get the webhookUrl and the webhookSecret for a link that you make at the service',
  details: ['The secret is shown this once, and never again.'],
  examples: ['settled links reserve order-8001 --amount 100.00'],
  options: MONEY,
  async run({ first: reference, options: { amount, currency }, server }) {
    const answer = await server().post<LinkAnswer>('/v1/links', { reference, amount, currency });
    return report(
      answer,
      answer.link.webhookSecret === undefined
        ? `Order ${reference} has its link already. Its secret was shown when it was reserved, and is not shown again.`
        : 'Give both to the service when you create the link; one that exists keeps its own. ' +
            'The secret is shown this once.',
    );
  },
});

function report(answer: LinkAnswer, message: string): Report {
  const { link, order } = answer;
  const lines = record({
    order: order.reference,
    amount: amountIn(order),
    state: order.state,
    link: link.id,
    webhookUrl: link.webhookUrl,
    webhookSecret: link.webhookSecret,
  });
  return { data: answer, lines: [message, '', ...lines] };
}

/** Asking about one link may take as long as its requests. */
const ASK_TIMEOUT_MS = 60_000;

type ReconcileAnswer = { dryRun: boolean; links: number; requests: number; etaSeconds: number };

export const reconcile = defineCommand({
  usage: 'reconcile',
  about: 'ask the service about every link that can still be paid, or about one',
  details: [
    'settled asks at the pace of the API budget, and other requests go first; the command says how long it takes.',
    "It looks for reserved links whose id is not known in the service's list; with --order for that one at once.",
    'With --order it asks at once, and the command ends when the answer is settled.',
    '--wait shows how far it is, and then what the answers brought. Ctrl-C ends the waiting, not the asking.',
    'It then ends with 75 if links were left that the service could not be asked about; settled continues to try those.',
  ],
  examples: ['settled reconcile --dry-run', 'settled reconcile --wait', 'settled reconcile --order order-8001'],
  options: {
    order: { value: 'REFERENCE', about: 'only the link of this order' },
    'dry-run': { about: 'only say how many requests it costs, and how long it takes' },
    wait: { about: 'wait until all were asked about, and say what the answers brought' },
  },
  async run({ options, server, screen, clock, json, print }) {
    const { order: reference, 'dry-run': dryRun = false, wait = false } = options;
    if (wait && dryRun) throw new UsageError('--wait and --dry-run are both given: a dry run has nothing to wait for.');
    const connection = server();
    const before = wait && reference === undefined ? await newestEvent(connection) : 0;
    const answer = await connection.post<ReconcileAnswer>('/v1/admin/reconcile', { dryRun, reference }, ASK_TIMEOUT_MS);
    if (!wait || reference !== undefined || answer.links === 0) {
      return { data: answer, lines: [sentence(answer, reference)] };
    }
    const progress = openProgress(print, screen, clock);
    const show = json ? async () => {} : progress.show;
    if (!json) await print(`${shownLines([sentence(answer, undefined)], screen).join('\n')}\n`);
    const waited = await untilAsked(connection, answer, { clock, before, show });
    if (!json) await progress.end();
    return reportOf(answer, waited);
  },
});

function sentence({ dryRun, links, requests, etaSeconds }: ReconcileAnswer, order: string | undefined): string {
  const cost = inNumber(requests, 'request');
  if (order !== undefined) {
    return dryRun
      ? `Asking about this order's link costs ${cost}. Nothing was done.`
      : `The service was asked. See: settled why ${shellWord(order)}`;
  }
  if (links === 0) {
    const none = 'settled knows the id of no link that can still be paid.';
    return dryRun ? `${none} Nothing was done.` : `${none} The service's list is read for links that are not known.`;
  }
  const what = `${inNumber(links, 'link')}: ${cost}, at most ${inNumber(Math.ceil(etaSeconds / 60), 'minute')}`;
  return dryRun ? `${what}. Nothing was done.` : `Asking about ${what}.`;
}

async function newestEvent(server: ServerApi): Promise<number> {
  const { events } = await server.get<{ events: EventDocument[] }>('/v1/events', { limit: 1 });
  return Number(events[0]?.id ?? 0);
}

/** `answers`: of each link the newest that brought news, else the newest. */
type Waited = { answers: EventDocument[]; unanswered: number; seconds: number };

const POLL_MS = { first: 250, most: 5_000 } as const;
/** After none is left to ask about, requests may still be under way: each ends within 10 s. */
const UNDER_WAY_MS = 12_000;
type Waiting = { clock: Clock; before: number; show: (progress: Progress) => Promise<void> };

/**
 * Follows the answers that the server records, until every link has one, or none is left that it will ask about now: the lag
 * of its oldest check is then shorter than this has taken.
 */
async function untilAsked(
  server: ServerApi,
  { links, etaSeconds }: ReconcileAnswer,
  { clock, before, show }: Waiting,
): Promise<Waited> {
  const startMs = clock.nowMs();
  const answers = new Map<string, EventDocument>();
  let [after, changedMs, delayMs] = [before, startMs, POLL_MS.first as number];
  const release = stayAlive();
  try {
    for (;;) {
      const leftMs = (etaSeconds * 1_000 * (links - answers.size)) / links;
      const askedMs = clock.nowMs() - startMs;
      const { stats } = await server.get<{ stats: StatsDocument }>('/v1/stats');
      const { pausedUntil } = stats.api;
      const pause = pausedUntil === null ? '' : `, and the service lets settled wait until ${pausedUntil}`;
      await show({ words: `asked about ${answers.size} of ${inNumber(links, 'link')}${pause}`, leftMs });
      const isDue = stats.checksLagSeconds.janitor !== undefined && stats.checksLagSeconds.janitor * 1_000 >= askedMs;
      const known = answers.size;
      after = await readAnswers(server, after, answers);
      const nowMs = clock.nowMs();
      if (isDue || answers.size > known) changedMs = nowMs;
      if (answers.size >= links || nowMs - changedMs > UNDER_WAY_MS) {
        // Replicas may record an answer after one with a higher number, which was read already.
        if (answers.size < links) await readAnswers(server, before, answers);
        const unanswered = Math.max(0, links - answers.size);
        return { answers: [...answers.values()], unanswered, seconds: (nowMs - startMs) / 1_000 };
      }
      await new Promise<void>((resolve) => void clock.after(delayMs, resolve));
      delayMs = Math.min(POLL_MS.most, delayMs * 1.5);
    }
  } finally {
    release();
  }
}

/**
 * Adds the settled answers that were recorded after the event of this number, by their links. Returns the number to go on
 * from: before the first answer that is not settled yet.
 */
async function readAnswers(server: ServerApi, after: number, answers: Map<string, EventDocument>): Promise<number> {
  let next: number | null = null;
  let query: Query = { limit: 200 };
  for (;;) {
    const page = await server.get<{ events: EventDocument[]; nextCursor: string | null }>('/v1/events', query);
    for (const row of page.events) {
      const number = Number(row.id);
      if (number <= after) return next ?? after;
      next ??= number;
      if (row.reading === null || row.linkId === null) continue;
      const known = answers.get(row.linkId);
      // A link may be asked about for two reasons, and an answer is news only once: the newest of a link, or its news.
      const isBetter = known === undefined || (isNews(row) === isNews(known) ? number > Number(known.id) : isNews(row));
      if (row.status !== 'done' && row.status !== 'dead') next = number - 1;
      else if (isBetter) answers.set(row.linkId, row);
    }
    if (page.nextCursor === null) return next ?? after;
    query = { limit: 200, cursor: page.nextCursor };
  }
}

const isNews = ({ outcome }: EventDocument): boolean => outcome === 'applied' || outcome === 'held';
/** More are only counted. */
const NEWS_SHOWN_MAX = 20;

const NEWS: Columns<EventDocument> = { order: 'reference', outcome: 'outcome', rule: 'rule' };

function reportOf(answer: ReconcileAnswer, { answers, unanswered, seconds }: Waited): Report {
  const news = answers.filter(isNews);
  const time = inWords(Math.max(1, Math.round(seconds)) * 1_000);
  const asked = answers.length;
  const brought = news.length === 0 ? 'nothing new' : `news about ${inNumber(news.length, 'order')}`;
  const first = `The service was asked about ${inNumber(asked, 'link')} in ${time}, which brought ${brought}.`;
  const rest: Block[] =
    unanswered === 0
      ? []
      : [
          `${inNumber(unanswered, 'link')} ${wasOrWere(unanswered)} left without an answer: settled continues to ask. \`settled attention\` and \`settled doctor\` say why.`,
        ];
  const more = news.length - NEWS_SHOWN_MAX;
  return {
    data: {
      ...answer,
      asked,
      unanswered,
      seconds: Math.round(seconds * 1_000) / 1_000,
      news: news.map(({ reference, outcome, rule }) => ({ reference, outcome, rule })),
    },
    lines: [
      first,
      ...rest,
      ...(news.length === 0 ? [] : ['', ...table(news.slice(0, NEWS_SHOWN_MAX), NEWS)]),
      ...(more > 0 ? ['', `And ${inNumber(more, 'order')} more: settled events list`] : []),
    ],
    exit: unanswered === 0 ? EXIT.ok : EXIT.tryAgain,
  };
}
