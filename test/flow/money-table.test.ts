import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { FLAGS, ORDER_STATES } from '../../src/domain/order.ts';
import { signIn } from '../support/access.ts';
import { startTestApp } from '../support/app.ts';
import { type Listening, listen } from '../support/network.ts';
import { tamper } from '../support/rows.ts';
import { allScripts, isMore, needsAPerson, type Script, sumsOf, truthOf } from './money_cases.ts';
import { differs, faultsOf, type Known, list, RULES } from './money_oracle.ts';
import {
  begin,
  type Case,
  decideAll,
  type Links,
  lookEverywhere,
  play,
  type Said,
  summaryOf,
} from './money_surfaces.ts';

/**
 * Every state × flag × set of payments, on every surface: each sentence about money is true of its order. What is true is
 * decided by an oracle that knows what was delivered and what people did, and nothing of the code.
 */

const CASES: readonly Case[] = allScripts().map((script, at) => ({ reference: `n${at + 1}`, script }));

/** What a person decides about the case, if its order is held: one thing or the other in turn. */
const decisionOf = ({ reference }: Case) => (Number(reference.slice(1)) % 2 === 0 ? 'accept' : 'reject');

/** All orders before any is decided, and the held ones afterwards. `promises`: what the decisions did otherwise than said. */
let before: Known[];
let after: Known[];
let promises: string[];
let summary: string;

beforeAll(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'settled-test-'));
  const storePath = join(folder, 'settled.db');
  const links: Links = new Map();
  const service = await startService();
  const asking = { SETTLED_API_URL: `${service.url}/api/v1`, SETTLED_API_KEY: 'key' };
  const first = await startTestApp({ storePath, environment: asking, atEnd: () => {} });
  await begin(first, CASES, links);
  await first.app.stop();
  await service.close();
  // Without an API, so that nothing in doubt waits for one.
  const settled = await startTestApp({ storePath, atEnd: () => {} });
  await play(settled, CASES, links);
  // A shop that makes its links itself does not name their addresses. These stand for links that settled opened.
  tamper(storePath, "UPDATE link SET url = 'https://pay.example.com/' || key");
  const { cookie } = await signIn(settled);
  const said = await lookEverywhere(settled, cookie);
  before = CASES.map((one) => known(one, one.script, said));
  summary = await summaryOf(settled);
  const held = CASES.filter(({ reference }) => said.get(reference)?.order.state === 'held');
  const answers = await decideAll(settled, held, decisionOf);
  const then = await lookEverywhere(settled, cookie, held);
  after = held
    .filter(({ reference }) => answers.get(reference) === 200)
    .map((one) => known(one, [...one.script, decisionOf(one)], then));
  promises = held.flatMap((one) => {
    const [was, is] = [said.get(one.reference) as Said, then.get(one.reference) as Said];
    const made = { decision: decisionOf(one), answered: answers.get(one.reference) ?? 0 } as const;
    return brokenPromises(was, is, made).map((fault) => `${one.script.join(', ')}, ${made.decision}: ${fault}`);
  });
  return async () => {
    await settled.app.stop();
    rmSync(folder, { recursive: true, force: true });
  };
}, 120_000);

function known({ reference }: Case, script: Script, said: ReadonlyMap<string, Said>): Known {
  return { reference, script, truth: truthOf(script), said: said.get(reference) as Said };
}

/** A service that knows no link yet. */
async function startService(): Promise<Listening> {
  const server = createServer((_request, response) => {
    const nothing = { paymentLinks: [], pagination: { totalPages: 0 } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(nothing));
  });
  return listen(server);
}

/** What a preview promised and the decision then did otherwise. */
function brokenPromises(
  before: Said,
  after: Said,
  { decision, answered }: { decision: 'accept' | 'reject'; answered: number },
): string[] {
  const { status, body } = before.previews?.[decision] ?? { status: 0, body: {} };
  if (status !== 200 || answered !== 200)
    return status === answered ? [] : [`${status} was promised, ${answered} came`];
  const { preview } = body;
  const told = after.notices.slice(before.notices.length).map(({ type }) => type);
  const kinds = (said: Said) => said.matters.map(({ kind }) => kind).filter((kind) => kind !== 'hold');
  const began = kinds(after).filter((kind) => !kinds(before).includes(kind));
  const ended = kinds(before).filter((kind) => !kinds(after).includes(kind));
  const sums = (said: Said) => JSON.stringify(said.order.paymentsTotal);
  return [
    differs('state', preview.to, after.order.state),
    differs('flags', list(preview.flags), list(after.order.flags)),
    differs('notices', preview.notices.join(), told.join()),
    differs('raised', list(preview.raised.filter((kind: string) => !kinds(before).includes(kind))), list(began)),
    differs('ended', list(preview.ended.filter((kind: string) => !preview.raised.includes(kind))), list(ended)),
    preview.entries.length === 0 && differs('sums', sums(before), sums(after)),
    preview.entries.length > 0 && 'entries of the ledger',
  ].filter((fault) => typeof fault === 'string');
}

/** Faults that a red test shows: comparing thousands of lines would take minutes. */
const SHOWN_MAX = 12;

it.each(Object.entries(RULES))('%s', (_name, rule) => {
  expect([...faultsOf(rule, before), ...faultsOf(rule, after)].slice(0, SHOWN_MAX)).toEqual([]);
});

it('a decision does what its preview says', () => {
  expect(promises.slice(0, SHOWN_MAX)).toEqual([]);
  expect(after.length).toBeGreaterThan(0);
});

it('the summary of attention: the orders whose money needs a person, and what is left of it', () => {
  const needing = before.filter(({ truth, said: { order } }) => needsAPerson(truth, order.state));
  // A link brings at most its own amount, so a payment of more on a held order is misread, and no sum of money.
  const counted = needing.map(({ truth, said: { order } }) =>
    truth.payments.filter((one) => order.state !== 'held' || !isMore(one)),
  );
  const withBalance = counted.filter((payments) => sumsOf({ payments }).some(({ balance }) => Number(balance) > 0));
  const left = sumsOf({ payments: counted.flat() });
  const sums = left.map(({ balance, currency }) => `${balance} ${currency}`).join(' and ');
  expect(summary).toContain(
    `Money: ${needing.length} orders, ${withBalance.length} of them with a balance of ${sums}.`,
  );
});

/** Before a payment is counted, no flag speaks of money. */
const NO_MONEY = ['awaiting_payment', 'payment_pending', 'expired'];

/** Flags that only some states can have, and why; any other flag may be in each state with money. */
const ONLY_IN: Readonly<Record<string, readonly string[]>> = {
  // Earlier versions set it.
  overpaid: [],
  // It says why an order is paid.
  underpaid: ['paid'],
  // A person has rejected the money. Accepting what came later makes it a duplicate.
  refund_due: ['held', 'cancelled'],
  // Of a cancelled order all is due, so that nothing is one too many.
  duplicate_payment: ['paid', 'held', 'refunded', 'disputed'],
};

it('has a case for every state with every flag that it can have, and for no other', () => {
  const wanted = ORDER_STATES.flatMap((state) => {
    const can = FLAGS.filter((flag) => !NO_MONEY.includes(state) && (ONLY_IN[flag] ?? [state]).includes(state));
    return [state, ...can.map((flag) => `${state} ${flag}`)];
  });
  const found = [...before, ...after].flatMap(({ said: { order } }) => {
    return [order.state, ...order.flags.map((flag) => `${order.state} ${flag}`)];
  });
  expect([...new Set(found)].toSorted()).toEqual(wanted.toSorted());
});
