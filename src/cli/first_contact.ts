import { rmSync } from 'node:fs';
import type { Finding } from '../api/doctor_store.ts';
import type { InstallationDocument } from '../api/installation.ts';
import { type Config, currentApiKey } from '../config/config.ts';
import type { Contact, FirstLink } from '../contact/contact.ts';
import type { GapName, GapRow, Shapes } from '../contact/gaps.ts';
import { inMoney } from '../domain/money.ts';
import { inNumber } from '../explain/glossary.ts';
import { terminalFault } from '../fault.ts';
import { type Report, wholeNumber } from '../terminal/command.ts';
import { UsageError } from '../terminal/failure.ts';
import { type Block, shownLines } from '../terminal/output.ts';
import { table } from '../terminal/table.ts';
import { type Clock, stayAlive } from '../work/clock.ts';
import { defineCommand } from './command.ts';
import type { ServerApi } from './connection.ts';
import { CommandError, EXIT, failure, Refusal } from './exit.ts';

/** The command that meets the service before the first customer does. */

const WAIT_SECONDS = 90;
/** As many characters as a reference may have, and all kinds of them. */
const LONGEST = 128;
const ODDEST = ' Ação "1/2" <é> 😀 %41+&?#';

const NONE_CAME =
  "In its sandbox the service sends none on its own: simulate one on the link's page while the command waits. Run it again, " +
  'with a longer --wait. `settled doctor` says whether a delivery can arrive.';
const UNWRITABLE = 'Nothing was made. No file is replaced: give --record a new one, in a folder that you may write.';
const ADVICE = 'Nothing was made. Set SETTLED_PUBLIC_URL to the https address under which it reaches settled.';

export const firstContact = defineCommand({
  usage: 'first-contact',
  about: 'meet the service before a customer does: what its specification leaves open, and whether settled reads it',
  details: [
    'The server must run. The command asks before it makes anything: an order in settled and a link at the service, of the',
    'least amount, which expires within a day. The shop hears of it as of any order.',
    'It compares what the service answers and delivers with what settled expects, and writes a recording without secrets and',
    'personal data. `settled sandbox --like FILE` then has the shapes of the service.',
    'The exit code is 1 if settled does not handle something. docs/first-contact.md explains each row.',
  ],
  examples: ['settled first-contact', 'settled first-contact --yes --references --wait 300 --payment'],
  options: {
    record: { value: 'FILE', about: 'a new file for the recording; default: REFERENCE.json in this folder' },
    wait: { value: 'SECONDS', about: `how long to wait for deliveries at most; default ${WAIT_SECONDS}` },
    payment: { about: "wait for a payment's event: make or simulate one on the link's page" },
    references: { about: 'make two more links, with the longest and with the oddest reference that settled sends' },
    yes: { about: 'ask nothing' },
  },
  isLocal: true,
  async run({ options, config, server, clock, json, print, screen }) {
    const waitMs = 1_000 * wholeNumber('wait', options.wait ?? String(WAIT_SECONDS), 0);
    const reference = `first-contact-${new Date(clock.nowMs()).toISOString().replace(/[-:.]/g, '')}`;
    const plan = { ...options, reference, waitMs, file: options.record ?? `${reference}.json` };
    const say = async (line: string) => void (json || (await print(`${shownLines([line], screen).join('\n')}\n`)));
    const { openTerminal } = await import('../terminal/process.ts');
    const terminal = options.yes ? null : openTerminal();
    if (!options.yes && terminal === null) {
      throw new UsageError('There is no terminal to ask on. Give --yes: an order and a link are made then.');
    }
    const ask = async (things: string) => {
      if (terminal !== null) return terminal.confirm(`Make ${things}?`);
      await say(`Making ${things}.`);
      return true;
    };
    const release = stayAlive();
    try {
      return await meet(config(), server(), plan, { clock, say, ask });
    } finally {
      terminal?.close();
      release();
    }
  },
});

type Plan = { reference: string; waitMs: number; file: string; payment?: true; references?: true };
type Around = { clock: Clock; say: (line: string) => Promise<void>; ask: (things: string) => Promise<boolean> };

async function meet(config: Config, server: ServerApi, plan: Plan, { clock, say, ask }: Around): Promise<Report> {
  const { apiUrl: url, publicUrl, publicUrlReaches, currency, headerPrefix } = config;
  const { reference, file, waitMs } = plan;
  if (url === null)
    throw new Refusal('api_not_configured', 'There is no API: set SETTLED_API_URL and SETTLED_API_KEY.');
  if (!publicUrlReaches)
    throw new Refusal('public_url_not_public', `The service cannot deliver to ${publicUrl}. ${ADVICE}`);
  const { installation } = await server.get<{ installation: InstallationDocument }>('/v1/admin/installation');
  if (installation.apiUrl !== url || installation.publicUrl !== publicUrl) {
    const other = `The server asks ${installation.apiUrl ?? 'no API'} and is at ${installation.publicUrl}`;
    const sentence = `${other}; this command would ask ${url} for ${publicUrl}. Nothing was made. Run it with the server's configuration.`;
    throw terminalFault('configuration_invalid', sentence);
  }
  const { writeRecording } = await import('../contact/recording.ts');
  const why = writeRecording(file, { found: {}, seen: [] });
  if (why !== null)
    throw new CommandError('files_unwritable', `The recording ${file} cannot be written: ${why}. ${UNWRITABLE}`);
  // It was only tried: an interrupted command leaves no file.
  rmSync(file);
  const { greet, leastAmount, openLink, askMore, awaitDeliveries } = await import('../contact/contact.ts');
  const apiOf = { url, key: currentApiKey(config), currency, headerPrefix, server, clock };
  const contact: Contact = { ...apiOf, found: {}, seen: [] };
  const { status } = await greet(contact);
  const unreached = await whyUnreached(server);
  await say(`The service takes the API key; the merchant is ${status ?? 'there'}. Nothing was made yet.`);
  const others: Shapes = {
    'longest-reference': reference.padEnd(LONGEST, '-0123456789'),
    'oddest-reference': `${reference}${ODDEST}`,
  };
  const more = Object.entries(plan.references ? others : {}) as [GapName, string][];
  const named = more.map(([, other]) => `\n  ${other}`).join('');
  if (named !== '') await say(`For --references, an order and a link of each of these references as well:${named}`);
  const link = `its link of ${inMoney(leastAmount(currency))}${named === '' ? '' : ', and those two'}`;
  if (!(await ask(`order ${reference} in settled, the recording ${file} and, at ${new URL(url).host}, ${link}`)))
    throw new CommandError('not_confirmed', 'Nothing was made, and nothing written.');
  const opened = (await openLink(contact, reference, null)) as FirstLink;
  const lookAround = async () => {
    await askMore(contact, opened);
    for (const [gap, other] of more) await openLink(contact, other, gap);
    const page = plan.payment
      ? "Pay, or in the service's sandbox simulate a payment, on the link's page:"
      : "The link's page, where payments are real unless this is the service's sandbox:";
    await say(
      unreached === null
        ? `Waiting for deliveries, ${waitMs / 1_000} s at most. ${page} ${opened.url ?? 'see the panel of the service'}`
        : `No delivery is waited for: ${unreached}.`,
    );
    if (unreached === null) await awaitDeliveries(contact, opened, { waitMs, forPayment: plan.payment === true });
    const isMissed = unreached === null && contact.found.deliveries === undefined;
    return isMissed ? { message: `No delivery came within ${waitMs / 1_000} s. ${NONE_CAME}`, exit: EXIT.ok } : null;
  };
  // What was seen before a step fails is worth as much: the link is made already.
  const flaw = await lookAround().catch(failure);
  opened.tail.stop.abort();
  return await reportOf(contact, plan, flaw);
}

/** Why no delivery can come; null if the server's own arrives at the public address. */
async function whyUnreached(server: ServerApi): Promise<string | null> {
  const { checks } = await server.get<{ checks: Finding[] }>('/v1/admin/doctor');
  const { status, detail } = checks.find(({ name }) => name === 'public address') ?? { status: 'ok', detail: '' };
  return status === 'ok' ? null : detail;
}

/** `flaw`: that no delivery came, or what ended the first contact early. */
async function reportOf(
  contact: Contact,
  { reference, file }: Plan,
  flaw: { message: string; exit: number } | null,
): Promise<Report> {
  const { rowsOf } = await import('../contact/gaps.ts');
  const { writeRecording } = await import('../contact/recording.ts');
  const rows = rowsOf(contact.found, contact);
  const why = writeRecording(file, contact);
  const bad = rows.filter(({ verdict }) => verdict === 'not handled').length;
  return {
    data: { reference, rows, recording: why === null ? file : null, flaw: flaw?.message ?? null },
    lines: [
      ...rowLines(rows),
      '',
      bad === 0 ? 'settled handles all that was seen.' : `settled does not handle ${inNumber(bad, 'row')}.`,
      ...(flaw === null ? [] : [flaw.message]),
      'The orders and links named above stay, and expire within a day.',
      why === null
        ? `\`settled sandbox --like ${file}\` plays what was seen.`
        : `${file} could not be written: ${why}.`,
    ],
    exit: why !== null ? EXIT.diskFailed : flaw?.exit || (bad === 0 ? EXIT.ok : EXIT.refused),
  };
}

/** Those that were not seen are named below the table. */
function rowLines(rows: readonly GapRow[]): Block[] {
  const seen = rows.filter(({ verdict }) => verdict !== 'not seen');
  const others = rows.filter((row) => !seen.includes(row)).map(({ about }) => about);
  const below = ({ advice }: GapRow) => advice;
  const lines = table(seen, { gap: 'about', 'this service': 'value', settled: 'verdict' }, { below });
  return others.length === 0 ? lines : [...lines, '', `Not seen: ${others.join(', ')}.`];
}
