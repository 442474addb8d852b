import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { readConfig } from '../config/config.ts';
import { processEnvironment, readEnvFile } from '../config/environment.ts';
import { systemClock } from '../work/clock.ts';
import type { Report } from './command.ts';
import { checkLines } from './doctor.ts';
import { CommandError, EXIT } from './exit.ts';
import type { CheckNote } from './init_checks.ts';
import { ENV_FILE, type InitPlan, planFiles, refuseForeignFiles, type WrittenFile, writeFiles } from './init_files.ts';
import { answerQuestions, givenAnswers, type InitOptions } from './init_questions.ts';
import type { Terminal } from './init_terminal.ts';
import { consultDoctor, type DoctorVerdict, playFirstOrder, type TestOrder } from './init_trial.ts';
import { table } from './table.ts';

/** Runs `settled init`: questions, files, doctor, a first test order. */

type InitCall = {
  options: InitOptions & { readonly force?: true; readonly 'skip-order'?: true };
  json: boolean;
  /** Null: no question is asked. */
  terminal: Terminal | null;
  /** Ends it early. */
  signal: AbortSignal;
};

/**
 * Runs `settled init`. Throws `UsageError`, `AnswerRefused`, the command's own reasons, and faults of configuration and store;
 * when it does, nothing was written, unless it was stopped later on.
 */
export async function setUp({ options, json, terminal, signal }: InitCall): Promise<Report> {
  refuseForeignFiles();
  const before = { inherited: processEnvironment().inherited, file: readEnvFile(resolve(ENV_FILE)) };
  const source = { options, before, terminal, signal };
  const given = givenAnswers(source);
  await mayReplace(options, terminal);
  terminal?.say(`Five questions, each checked as you answer. Until the last one nothing is written; Ctrl+C ends it.`);
  const { answers, notes } = await answerQuestions(source, given);
  const plan = planFiles(answers, before);
  readConfig(plan.environment);
  terminal?.say('');
  if (terminal !== null && !(await terminal.confirm(`Write ${namesOf(plan)} in ${process.cwd()}?`, true))) {
    throw new CommandError('not_confirmed', 'Nothing was written.');
  }
  const files = writeFiles(plan, systemClock.nowMs());
  terminal?.say('  Written. Now settled itself is started for a moment, and doctor looks at it …');
  const doctor = await consultDoctor(() => readConfig(), signal);
  if (options['skip-order'] !== true)
    terminal?.say('  … and a first order is paid at a sandbox, in a store of its own …');
  const order = options['skip-order'] === true ? null : await playFirstOrder(signal);
  const isPaid = order === null || order.steps !== null || !order.isFailure;
  const next = nextSteps(plan);
  // A person has read the notes already.
  const shown = terminal === null || json ? notes : [];
  return {
    data: { folder: process.cwd(), files, notes, doctor, order, next },
    lines: [
      ...noteLines(shown),
      ...fileLines(files),
      ...doctorLines(doctor),
      ...orderLines(order),
      '',
      ...nextLines(next),
    ],
    exit: doctor.exit === EXIT.ok && !isPaid ? EXIT.refused : doctor.exit,
  };
}

async function mayReplace({ force }: InitCall['options'], terminal: Terminal | null): Promise<void> {
  if (force === true || !existsSync(ENV_FILE)) return;
  const question = `${resolve(ENV_FILE)} exists. Replace it? Its settings are offered again, and a copy is kept.`;
  if (await terminal?.confirm(question, false)) return;
  const message =
    `${resolve(ENV_FILE)} exists, and nothing was changed. With --force it is replaced: settings that have no question are ` +
    'kept, and so is a copy of the file. `settled doctor` checks what is there.';
  throw new CommandError('not_confirmed', message);
}

function namesOf({ secrets }: InitPlan): string {
  return [ENV_FILE, ...secrets.keys()].join(', ');
}

type ReportLine = Report['lines'][number];

function noteLines(notes: readonly CheckNote[]): ReportLine[] {
  return notes.length === 0 ? [] : [...table(notes, { checked: 'answer', status: 'status', found: 'detail' }), ''];
}

function fileLines(files: readonly WrittenFile[]): string[] {
  if (files.length === 0) return ['Nothing had to be written: .env and data/ say all of this already.'];
  const kept = ({ before }: WrittenFile) => (before === null ? '' : `; the one before is ${before}`);
  return [`Written in ${process.cwd()}, for this user alone:`, ...files.map((file) => `  ${file.path}${kept(file)}`)];
}

function doctorLines({ checks, ranAlready }: DoctorVerdict): ReportLine[] {
  const restart = '(settled runs already, with the settings that it was started with: restart it.)';
  return ['', "Doctor's verdict:", ...checkLines(checks), ...(ranAlready ? [restart] : [])];
}

function orderLines(order: TestOrder | null): ReportLine[] {
  if (order === null) return [];
  if (order.steps === null) {
    return ['', `${order.isFailure ? 'The test order failed' : 'No test order was made'}: ${order.why}`];
  }
  const columns = { step: 'step', 'what happened': 'happened', order: 'state' } as const;
  return [
    '',
    'A first order at a sandbox, in a store of its own (no money is real, and nothing left this machine):',
    ...table(order.steps, columns),
  ];
}

/** What a person does then, a step each. */
function nextSteps({ environment, settings }: InitPlan): string[] {
  const config = readConfig(environment);
  const file = (name: string) => settings[`${name}_FILE`] ?? name;
  const { host, port } = config.operatorListen;
  const key =
    config.store.engine === 'sqlite' && config.secretsKey === null
      ? `${config.store.path}.key`
      : file('SETTLED_SECRETS_KEY');
  const notices =
    config.shopUrl === null
      ? 'It reads what happened to its orders from the feed, GET /v1/feed.'
      : `Notices to it are signed with the secret in ${file('SETTLED_SHOP_SECRET')}.`;
  return [
    'Start it in this folder: `settled serve`; in a checkout `npm start`; if settled is a package in this folder, ' +
      '`npx settled serve`. For good: the unit of systemd or compose.yaml, see Run it in docs/operations.md.',
    `Give the shop its token, which is in ${file('SETTLED_SHOP_TOKEN')}. It opens orders at ${host}:${port}: ` +
      `docs/integrate.md. ${notices}`,
    `Keep a copy of ${key} elsewhere, apart from the backups. Without it no delivery can be verified.`,
    ...(process.getuid?.() === 0
      ? ['The files belong to root: give them to the user that will run settled (chown -R).']
      : []),
  ];
}

function nextLines(steps: readonly string[]): ReportLine[] {
  return ['Next:', ...steps.map((step, at) => `  ${at + 1}. ${step}`)];
}
