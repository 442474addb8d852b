import type { EventDocument, EventWithBody } from '../api/events.ts';
import type { RejectionDocument } from '../api/rejections.ts';
import { diagnose } from '../receive/diagnosis.ts';
import { explainDiagnosis } from '../receive/diagnosis_words.ts';
import { readGivenFile, wholeNumber } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { type Block, verbatim } from '../terminal/output.ts';
import { record } from '../terminal/table.ts';
import { systemClock } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import { EXIT } from './exit.ts';
import { readSecret, SECRET_FILE } from './links.ts';
import { EVENT_OPTIONS, faultWords, listCommand, REJECTION_OPTIONS, repeatCommand, statusWords } from './lists.ts';
import { orderPath } from './orders.ts';

/** The commands about what the service said: events, which settled recorded, and deliveries that it refused. */

export const eventsList = listCommand<EventDocument>({
  usage: 'events list',
  about: 'list recorded events, the newest first',
  details: [
    'pending: it waits to be settled. leased (in work): it is being settled. done: it was settled; its result is how.',
    'dead: it could not be settled and waits for a person: `settled events show ID` says why.',
    "What the service's API answered is listed too: its type is why it was asked.",
  ],
  examples: ['settled events list --status dead', 'settled events list --order order-8001 --since 3d'],
  options: EVENT_OPTIONS,
  list: 'events',
  nothing: 'No such events.',
  columns: {
    id: 'id',
    received: 'receivedAt',
    order: 'reference',
    type: 'type',
    status: statusWords,
    result: ({ fault, rule, outcome }) => fault?.code ?? rule ?? outcome,
    'event id': 'eventId',
  },
});

export const eventsShow = defineCommand({
  usage: 'events show ID',
  about: 'show one event with its body, as it came',
  examples: ['settled events show 12'],
  async run({ first, server }) {
    const answer = await server().get<{ event: EventWithBody }>(`/v1/events/${encodeURIComponent(first)}`);
    const { event } = answer;
    const { bodyText: _, bodyBase64: __, bodyDropped: ___, ...fields } = event;
    const timestamp = new Date(Number(event.timestamp)).toISOString();
    const lines = record({ ...fields, timestamp, status: statusWords(event), fault: faultWords(event) });
    return { data: answer, lines: [...lines, '', ...bodyLines(event)] };
  },
});

function bodyLines({ id, bodyText, bodyDropped }: EventWithBody): Block[] {
  if (bodyDropped) return ['Its body was dropped when it was old: SETTLED_KEEP_BODIES says when.'];
  if (bodyText !== null) return [verbatim(bodyText)];
  return [`The body is not UTF-8 text. Its bytes are in: settled events show ${id} --json`];
}

export const eventsReplay = repeatCommand({
  name: 'events replay',
  about: 'settle recorded events again',
  details: ['This never pays an order twice: its settlement row guards against that.'],
  examples: ['settled events replay 12'],
  one: 'event',
  action: 'replay',
  done: 'replayed',
  result: () => 'pending: it is settled again now',
});

export const rejections = listCommand<RejectionDocument>({
  usage: 'rejections',
  about: 'list the deliveries that were refused as not authentic, by order and reason',
  details: [
    'The text below a line says what the last such delivery turned out to be, if settled found that out.',
    'docs/errors.md explains the reasons; `settled verify` finds the cause of a captured delivery.',
  ],
  examples: ['settled rejections --order order-8001'],
  options: REJECTION_OPTIONS,
  list: 'rejections',
  nothing: 'No delivery was refused.',
  columns: { order: 'reference', reason: 'reason', times: 'count', first: 'firstAt', last: 'lastAt' },
  below: ({ diagnosis }) => diagnosis?.answer ?? null,
});

export const verifyDelivery = defineCommand({
  usage: 'verify',
  about: 'say whether a captured delivery is authentic, and if it is not, what is wrong with it',
  details: [
    'It works without a server if you have the secret.',
    'The secret of a link that settled opened is never shown: with --order the running server verifies,',
    'and shows neither the secret nor the right code.',
    'The body must be the bytes as they came: save them with a tool that changes nothing.',
    'A delivery that was captured some time ago is stale now: give the time at which it came as --now.',
  ],
  examples: [
    'settled verify --body body.json --signature "$SIGNATURE" --timestamp 1900000000000 --secret-file secret.txt',
    'settled verify --order order-8001 --body body.json --signature "$SIGNATURE" --timestamp 1900000000000',
  ],
  options: {
    body: { value: 'FILE', about: 'the raw body; - reads standard input; needed' },
    signature: { value: 'TEXT', about: 'the value of x-service-signature, or as SETTLED_HEADER_PREFIX has it; needed' },
    timestamp: { value: 'TEXT', about: 'the value of x-service-timestamp, or as SETTLED_HEADER_PREFIX has it; needed' },
    order: { value: 'REFERENCE', about: "verify with the secret of this order's link, at the running server" },
    'secret-file': SECRET_FILE,
    now: { value: 'MS', about: 'when the delivery came, in epoch milliseconds; the present time if left out' },
    tolerance: { value: 'SECONDS', about: "clock difference; SETTLED_TOLERANCE_SECONDS, with --order the server's" },
  },
  async run({ options, config, server }) {
    const { body, signature, timestamp, order, now, tolerance } = options;
    const secretFile = options['secret-file'];
    if (
      body === undefined ||
      (secretFile === undefined) === (order === undefined) ||
      (body === '-' && secretFile === '-')
    ) {
      throw new UsageError(
        '`settled verify` needs --body FILE, and either --order REFERENCE or --secret-file FILE, but not both; only one of ' +
          'the two files may be standard input. See: settled help verify',
      );
    }
    const secret = readSecret(secretFile);
    if (signature === undefined || timestamp === undefined) {
      throw new UsageError(
        '`settled verify` needs --signature TEXT and --timestamp TEXT. A delivery that came without one of these headers ' +
          'was refused for that.',
      );
    }
    const atMs = now === undefined ? null : wholeNumber('now', now, 0);
    const captured = { body: readGivenFile('body', body), signature, timestamp, atMs };
    const toleranceSeconds = () =>
      tolerance === undefined ? config().toleranceSeconds : wholeNumber('tolerance', tolerance, 1);
    const found =
      secret === undefined
        ? await verifyThere(server(), order as string, captured)
        : verifyHere(secret, captured, toleranceSeconds());
    return {
      data: found,
      lines: [`${found.verdict}: ${found.answer}`, ...found.advice],
      exit: found.authentic ? EXIT.ok : EXIT.notAuthentic,
    };
  },
});

type Captured = { body: Buffer; signature: string; timestamp: string; atMs: number | null };
type Found = { authentic: boolean; verdict: string; answer: string; advice: string[]; details: object };

function verifyHere(secret: string, { atMs, ...captured }: Captured, toleranceSeconds: number): Found {
  const nowMs = atMs ?? systemClock.nowMs();
  const diagnosis = diagnose({ ...captured, secrets: [secret], nowMs, toleranceSeconds });
  const { code: verdict, ...details } = diagnosis;
  return { authentic: verdict === 'authentic', verdict, ...explainDiagnosis(diagnosis), details };
}

/** As much as fits into a request to the server. */
const BODY_BYTES_MAX = 45_000;

async function verifyThere(server: ServerApi, order: string, captured: Captured): Promise<Found> {
  const { body, signature, timestamp, atMs } = captured;
  if (body.length > BODY_BYTES_MAX) {
    throw new UsageError(`The body has ${body.length} bytes; with --order it may have ${BODY_BYTES_MAX} at most.`);
  }
  const { verdict: found } = await server.post<{ verdict: Omit<Found, 'verdict'> & { code: string } }>(
    `${orderPath(order)}/verify`,
    { signature, timestamp, bodyBase64: body.toString('base64'), atMs: atMs ?? undefined },
  );
  const { code: verdict, ...rest } = found;
  return { verdict, ...rest };
}
