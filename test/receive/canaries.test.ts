import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import type { Finished } from '../../prove/harness/program.ts';
import { testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { spawnSettled } from '../support/process.ts';
import { eventually } from '../support/timing.ts';

const OPERATOR_TOKEN = 'canary-operator-token-1f0c';
const SHOP_TOKEN = 'canary-shop-token-93ab';
const SECRETS_KEY = randomBytes(32).toString('base64');
const REGISTERED_SECRET = 'canary-registered-secret-77d1';
const CORRECTED_SECRET = 'canary-corrected-secret-40be';
const SHORT_SECRET = 'canary-short';
const EMAIL = 'canary-customer@example.com';
const NAME = 'Canary Customer';
const FORGED = randomBytes(32).toString('hex');

type Answer = { what: string; text: string };
type Link = { webhookUrl: string; webhookSecret: string };

/** Everything that a round of good and bad requests has left: what was logged, answered and stored. */
type Round = {
  output: string;
  /** All answers but the ones that hand out a webhookUrl. */
  answers: Answer[];
  handedOut: Answer[];
  eventDetails: Answer[];
  files: { name: string; bytes: Buffer }[];
  links: Link[];
  signatures: string[];
};

const CUSTOMER = `"customer":{"name":"${NAME}","email":"${EMAIL}"}`;
/** With a customer where the service names one, and where it does not. */
const withCustomer = (body: string) =>
  body.replace('"latestPayment":{', `"latestPayment":{${CUSTOMER},`).replace(/}$/, `,${CUSTOMER}}`);
/** Answers that show an order: people look there for who paid. */
const SHOWS_ORDERS = /^\/v1\/(orders|attention)\b/;

async function playRound(): Promise<Round> {
  const storePath = join(testFolder(), 'settled.db');
  const running = spawnSettled(['serve'], {
    SETTLED_STORE: `sqlite:${storePath}`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
    SETTLED_SHOP_TOKEN: SHOP_TOKEN,
    SETTLED_SECRETS_KEY: SECRETS_KEY,
    SETTLED_LOG_LEVEL: 'trace',
  });
  const { hooks, operator } = JSON.parse(await running.line(/settled is serving/));
  const round: Round = {
    output: '',
    answers: [],
    handedOut: [],
    eventDetails: [],
    files: [],
    links: [],
    signatures: [FORGED],
  };

  async function ask(to: Answer[], what: string, url: string, init: RequestInit = {}): Promise<Response> {
    const response = await fetch(url, init);
    const text = await response.clone().text();
    to.push({ what, text: `${JSON.stringify([...response.headers])}\n${text}` });
    return response;
  }
  const api = (to: Answer[], path: string, body?: unknown, token = OPERATOR_TOKEN) =>
    ask(to, path, `http://127.0.0.1:${operator.port}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  const reserve = async (reference: string): Promise<Link> => {
    const { link } = (await (await api(round.handedOut, '/v1/links', { reference, amount: '100.00' })).json()) as {
      link: Link;
    };
    const webhookUrl = link.webhookUrl.replace('127.0.0.1:8787', `127.0.0.1:${hooks.port}`);
    round.links.push({ ...link, webhookUrl });
    return { ...link, webhookUrl };
  };
  const deliver = (what: string, link: Link, body: string, headers = signedHeaders(link.webhookSecret, body)) => {
    const { 'x-service-signature': signature = '' } = headers;
    round.signatures.push(signature, Buffer.from(signature, 'hex').toString('base64'));
    return ask(round.answers, what, link.webhookUrl, { method: 'POST', body, headers });
  };
  const status = async (response: Promise<Response>) => (await response).status;

  // It ends when settled stops.
  const followed = api(round.answers, '/v1/tail');
  // Good deliveries: paid, duplicate, conflict.
  const paid = await reserve('paid');
  const body = withCustomer(paymentEvent({ id: 'evt_1', linkId: 'pl_1', amount: '100.00' }));
  expect(await status(deliver('new', paid, body))).toBe(200);
  expect(await status(deliver('duplicate', paid, body))).toBe(200);
  expect(await status(deliver('conflict', paid, withCustomer(paymentEvent({ id: 'evt_1' }))))).toBe(200);
  // Bad ones: forged, malformed, stale, unreadable, too large, encoded, at unknown and impossible addresses.
  const now = String(Date.now());
  const forged = { 'x-service-signature': FORGED, 'x-service-timestamp': now };
  expect(await status(deliver('forged', paid, body, forged))).toBe(401);
  const malformed = { 'x-service-signature': `canary ${FORGED}`, 'x-service-timestamp': now };
  expect(await status(deliver('malformed', paid, body, malformed))).toBe(401);
  expect(await status(deliver('stale', paid, body, signedHeaders(paid.webhookSecret, body, '1700000000000')))).toBe(
    400,
  );
  expect(await status(deliver('unreadable', paid, `${EMAIL} is not JSON`))).toBe(202);
  expect(await status(deliver('too large', paid, EMAIL.repeat(20_000)))).toBe(413);
  const gzip = { ...signedHeaders(paid.webhookSecret, body), 'content-encoding': 'gzip' };
  expect(await status(deliver('encoded', paid, body, gzip))).toBe(415);
  const unknown = { ...paid, webhookUrl: `http://127.0.0.1:${hooks.port}/hooks/${FORGED.slice(0, 32)}` };
  expect(await status(deliver('unknown token', unknown, body))).toBe(401);
  const impossible = { ...paid, webhookUrl: `${paid.webhookUrl}%zz` };
  expect(await status(deliver('impossible address', impossible, body))).toBe(400);
  const shared = { ...paid, webhookUrl: `http://127.0.0.1:${hooks.port}/hooks` };
  expect(await status(deliver('shared route, forged', shared, body, forged))).toBe(401);
  // Money that needs a person, an event that names another link, and a person's decision.
  const held = await reserve('held');
  const less = withCustomer(paymentEvent({ linkId: 'pl_2', amount: '60.00' }));
  expect(await status(deliver('less money', held, less))).toBe(200);
  expect(await status(deliver('another link', held, withCustomer(paymentEvent({ linkId: 'pl_1' }))))).toBe(200);
  await eventually(async () => {
    const { order } = (await (await api(round.answers, '/v1/orders/held')).json()) as { order: { state: string } };
    expect(order.state).toBe('held');
  });
  const accept = { decision: 'accept', reason: 'seen in the panel' };
  expect(await status(api(round.answers, '/v1/orders/held/resolve', accept))).toBe(200);
  // A link that exists, its secret corrected, and requests that are wrong in every way.
  const registration = { reference: 'registered', amount: '100.00', id: 'pl_3', webhookSecret: REGISTERED_SECRET };
  expect(await status(api(round.handedOut, '/v1/links', registration))).toBe(201);
  const correction = { ...registration, webhookSecret: CORRECTED_SECRET };
  expect(await status(api(round.answers, '/v1/links', correction, SHOP_TOKEN))).toBe(403);
  expect(await status(api(round.handedOut, '/v1/links', correction))).toBe(200);
  const short = { ...registration, webhookSecret: SHORT_SECRET };
  expect(await status(api(round.answers, '/v1/links', short))).toBe(400);
  expect(await status(api(round.answers, '/v1/links', JSON.stringify(registration).slice(0, -1)))).toBe(400);
  const wrongMoney = { ...registration, amount: '-1' };
  expect(await status(api(round.answers, '/v1/links', wrongMoney))).toBe(422);
  expect(await status(api(round.answers, '/v1/orders', undefined, `${OPERATOR_TOKEN}x`))).toBe(401);
  expect(await status(api(round.answers, '/v1/stats', undefined, SHOP_TOKEN))).toBe(403);
  // A store that cannot commit for a while.
  const db = new Database(storePath);
  db.exec('BEGIN IMMEDIATE');
  const locked = withCustomer(paymentEvent({ id: 'evt_locked' }));
  expect(await status(deliver('locked store', paid, locked))).toBe(503);
  expect(await status(deliver('forged, locked store', paid, locked, forged))).toBe(401);
  expect(await status(api(round.answers, '/v1/links', { reference: 'locked', amount: '100.00' }))).toBe(503);
  db.exec('ROLLBACK');
  db.close();
  expect(await status(deliver('store back', paid, locked))).toBe(200);
  await eventually(async () => {
    const { stats } = (await (await api(round.answers, '/v1/stats')).json()) as { stats: { rejections: number } };
    expect(stats.rejections).toBeGreaterThanOrEqual(2);
  });

  for (const path of ['orders', 'events', 'rejections', 'attention', 'stats', 'admin/doctor', 'notices']) {
    expect(await status(api(round.answers, `/v1/${path}`))).toBe(200);
  }
  for (const reference of ['paid', 'held', 'registered']) {
    expect(await status(api(round.answers, `/v1/orders/${reference}`))).toBe(200);
    expect(await status(api(round.answers, `/v1/orders/${reference}/timeline`))).toBe(200);
  }
  for (let event = 1; event <= 5; event++) {
    expect(await status(api(round.eventDetails, `/v1/events/${event}`))).toBe(200);
  }
  expect(await status(api(round.answers, '/v1/events/1/replay', {}))).toBe(202);
  expect(await status(api(round.answers, '/v1/admin/backup', {}))).toBe(201);
  expect(await status(api(round.answers, '/metrics'))).toBe(200);

  // The files are read while the log of changes still holds everything, and again when it is folded in.
  const readFiles = () => {
    for (const entry of readdirSync(dirname(storePath), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      round.files.push({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) });
    }
  };
  readFiles();
  running.child.kill('SIGTERM');
  const finished: Finished = await running.finished;
  expect(finished.code).toBe(0);
  expect(await status(followed)).toBe(200);
  readFiles();
  round.output = finished.stdout + finished.stderr;
  return round;
}

describe('settled, after a round of good and bad requests', () => {
  it('has put no secret into its logs, its answers or its files', async () => {
    const round = await playRound();
    const tokens = round.links.map(({ webhookUrl }) => webhookUrl.split('/').at(-1) as string);
    const reservedSecrets = round.links.map(({ webhookSecret }) => webhookSecret);
    const secrets = [
      ...reservedSecrets,
      REGISTERED_SECRET,
      CORRECTED_SECRET,
      SHORT_SECRET,
      OPERATOR_TOKEN,
      SHOP_TOKEN,
      SECRETS_KEY,
      ...round.signatures.filter((signature) => signature.length >= 32),
    ];
    const found = (places: { name: string; bytes: Buffer | string }[], canaries: readonly string[]) =>
      places.flatMap(({ name, bytes }) =>
        canaries.filter((canary) => bytes.includes(canary)).map((canary) => `${canary} in ${name}`),
      );
    const named = (answers: readonly Answer[]) => answers.map(({ what, text }) => ({ name: what, bytes: text }));

    // The round did log, answer and store: there is something to search.
    expect(round.output.split('\n').length).toBeGreaterThan(10);
    expect(round.output).toContain('deliveries were refused, or not recorded');
    expect(round.answers.length).toBeGreaterThan(40);
    expect(round.answers.find(({ what }) => what === '/v1/tail')?.text).toMatch(/"paid"/);
    expect(round.files.map(({ name }) => name)).toEqual(expect.arrayContaining(['settled.db', 'settled.db-wal']));
    expect(
      found(
        round.files.map(({ name, bytes }) => ({ name, bytes })),
        [EMAIL],
      ),
    ).not.toEqual([]);

    const log = [{ name: 'the log', bytes: round.output }];
    expect(found(log, [...secrets, ...tokens, EMAIL, NAME, 'evt_1'])).toEqual([]);
    expect(found(named(round.answers), [...secrets, ...tokens])).toEqual([]);
    const [orders, others] = [true, false].map((shows) =>
      named(round.answers.filter(({ what }) => SHOWS_ORDERS.test(what) === shows)),
    );
    expect(found(orders ?? [], [NAME])).toContain(`${NAME} in /v1/orders/paid`);
    expect(found(others ?? [], [EMAIL, NAME])).toEqual([]);
    // The answers that hand out a link show its address and, once, the secret that was made for it.
    const notMade = secrets.filter((secret) => !reservedSecrets.includes(secret));
    expect(found(named(round.handedOut), [...notMade, EMAIL])).toEqual([]);
    // One event's details show its body, byte for byte; nothing else does.
    expect(found(named(round.eventDetails), [...secrets, ...tokens])).toEqual([]);
    expect(found(round.files, secrets)).toEqual([]);
    // Of a refused delivery not even the decoded signature is kept.
    expect(round.files.filter(({ bytes }) => bytes.includes(Buffer.from(FORGED, 'hex')))).toEqual([]);
  });
});
