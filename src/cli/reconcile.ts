import { defineCommand } from './command.ts';
import { count } from './layout.ts';

/** Asking about one link may take as long as its requests. */
const ASK_TIMEOUT_MS = 60_000;

type ReconcileAnswer = { dryRun: boolean; links: number; requests: number; etaSeconds: number };

export const reconcile = defineCommand({
  name: 'reconcile',
  positionals: '',
  about: 'ask the service about every link that can still be paid, or about one',
  details: [
    'Links are asked about at the pace of the API budget, and other requests go first; it says how long that takes.',
    "Reserved links whose id is not known are looked for in the service's list; --order looks for one of them at once.",
    'With --order it asks at once, and ends when the answer is settled.',
  ],
  examples: ['settled reconcile --dry-run', 'settled reconcile --order order-8001'],
  options: {
    order: { value: 'REFERENCE', about: 'only the link of this order' },
    'dry-run': { about: 'only say how many requests it costs, and how long it takes' },
  },
  async run({ options, server }) {
    const dryRun = options['dry-run'] === true;
    const body = { dryRun, ...(options.order === undefined ? {} : { reference: options.order }) };
    const answer = await server().post<ReconcileAnswer>('/v1/admin/reconcile', body, ASK_TIMEOUT_MS);
    return { data: answer, lines: [sentence(answer, options.order)] };
  },
});

function sentence({ dryRun, links, requests, etaSeconds }: ReconcileAnswer, order: string | undefined): string {
  const cost = count(requests, 'request');
  if (order !== undefined) {
    return dryRun
      ? `Asking about this order's link costs ${cost}. Nothing was done.`
      : `The service was asked. See: settled why ${order}`;
  }
  if (links === 0) {
    const none = 'No link whose id is known can still be paid.';
    return dryRun ? `${none} Nothing was done.` : `${none} The service's list is read for links that are not known.`;
  }
  const what = `${count(links, 'link')}: ${cost}, about ${count(Math.ceil(etaSeconds / 60), 'minute')}`;
  return dryRun ? `${what}. Nothing was done.` : `Asking about ${what}.`;
}
