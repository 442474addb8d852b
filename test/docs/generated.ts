import { COMMANDS } from '../../sandbox/cli/commands.ts';
import { EXIT_MEANINGS as EXIT_MEANINGS_OF_SANDBOX } from '../../sandbox/cli/exit.ts';
import type { Context } from '../../sandbox/context.ts';
import { controlRoutes } from '../../sandbox/control/routes.ts';
import { KNOWN_FAULTS } from '../../sandbox/fault_plans.ts';
import { SWITCHES } from '../../sandbox/options.ts';
import { SCENARIOS } from '../../sandbox/scenarios.ts';
import { OPEN_ROUTES, ROUTES } from '../../src/api/router.ts';
import { EXIT_MEANINGS, EXIT_OF_COMMAND, exitOfProblem } from '../../src/cli/exit.ts';
import { SETTINGS } from '../../src/config/settings.ts';
import { GAPS } from '../../src/contact/gaps.ts';
import { PAST_RULES, RULES } from '../../src/domain/decision.ts';
import { ATTENTION_KINDS } from '../../src/domain/matter.ts';
import { NOTICE_TYPES } from '../../src/domain/notice.ts';
import { FLAGS, HOLD_REASONS, ORDER_STATES } from '../../src/domain/order.ts';
import { FAULTS } from '../../src/fault.ts';
import { PROBLEM_CODES, PROBLEM_MEANINGS } from '../../src/http/problem.ts';
import { OBJECT_PLACES, VALUE_PLACES } from '../../src/paylink/places.ts';
import { ANSWERS } from '../../src/receive/answers.ts';
import type { Diagnosis } from '../../src/receive/diagnosis.ts';
import { HOLD_WORDS, KEPT_REASONS } from '../../src/vocabulary.ts';
import { accessWords } from '../support/access.ts';
import { BY_HAND, blocks, inCode, list, type Row, table } from '../support/blocks.ts';
import { clientTypes, GENERATED } from '../support/client_types.ts';
import { DOCUMENT, DOCUMENTED, problemsOf } from '../support/document.ts';
import { anchorsOf } from '../support/markdown.ts';
import { explore } from '../support/orders.ts';

/** What stands in for the default of a setting that has none. */
const INSTEAD: Readonly<Record<string, string>> = {
  SETTLED_OPERATOR_TOKEN: 'generated, in `<database>.operator-token`',
  SETTLED_SECRETS_KEY: 'generated, in `<database>.key`',
  SETTLED_TIMEZONE: "this machine's",
  SETTLED_LOG_FORMAT: '`pretty` on a terminal, else `json`',
};

/** The exit code of `settled verify` with each verdict. Some are only about deliveries that settled rejected. */
const VERDICTS: Readonly<Record<Diagnosis['code'], string>> = {
  authentic: '0',
  stale_clock: '65',
  malformed_signature: '65',
  malformed_timestamp: '65',
  unusable_secret: '65',
  altered_body: '65',
  altered_timestamp: '65',
  wrong_secret: '65',
  signed_otherwise: '65',
  wrong_secret_or_altered_body: '65',
  other_header_names: '–',
  other_method: '–',
  content_encoding: '–',
  body_size: '–',
};

/** What is checked in and generated from the source: `generated.test.ts` compares all of it, and `-u` writes it. */
export const CHECKED_IN: Readonly<Record<string, (text: string) => string>> = {
  'client/settled.ts': (text) => text.split(GENERATED)[0] + clientTypes(DOCUMENT),
  'docs/api.md': blocks({ routes: (block, page) => table(routes(page))(block) }),
  'docs/configure.md': blocks({ settings: table(settings()) }),
  'docs/errors.md': blocks({
    'exit codes': table(Object.keys(EXIT_MEANINGS).map((code) => [code, BY_HAND, BY_HAND])),
    "the command's own codes": table(
      Object.entries(EXIT_OF_COMMAND).map(([code, exit]) => [inCode(code), String(exit), BY_HAND]),
    ),
    faults: table(Object.entries(FAULTS).map(([code, exit]) => [inCode(code), String(exit ?? '–'), BY_HAND, BY_HAND])),
    problems: table(problems()),
    'answers of the hook': table(hookAnswers()),
    'reasons of rejections': table(KEPT_REASONS.map((reason) => [inCode(reason), BY_HAND, BY_HAND])),
    verdicts: table(Object.entries(VERDICTS).map(([code, exit]) => [inCode(code), exit, BY_HAND, BY_HAND])),
  }),
  'docs/first-contact.md': blocks({
    gaps: table(
      Object.values(GAPS).map(([about, expected, handled, advice]) => [
        about,
        expected === null ? 'as configured' : inCode(expected),
        handled === '' ? '' : inCode(...handled.split(' ')),
        advice,
      ]),
    ),
  }),
  'docs/events.md': blocks({
    objects: table(OBJECT_PLACES.map(({ role, in: holders, names }) => [role, holders.join(', '), inCode(...names)])),
    values: table(
      VALUE_PLACES.map(({ in: holders, names }) => [BY_HAND, holders.join(', '), inCode(...names), BY_HAND]),
    ),
  }),
  'docs/states.md': blocks({
    states: list(ORDER_STATES),
    diagram,
    rules: list([...RULES, ...PAST_RULES]),
    flags: list(FLAGS),
    'hold reasons': () => HOLD_REASONS.map((reason) => `- ${inCode(reason)}: ${HOLD_WORDS[reason]}.`).join('\n'),
    attention: list(ATTENTION_KINDS),
    notices: list(NOTICE_TYPES),
  }),
  'sandbox/README.md': blocks({
    options: table(optionsOfSandbox()),
    switches: table(
      Object.entries(SWITCHES).map(
        ([
          name,
          {
            about,
            values: [first, ...more],
          },
        ]) => [inCode(name), about, [`**${inCode(first)}**`, ...more.map((value) => inCode(value))].join(', ')],
      ),
    ),
    faults: table(faultsOfSandbox()),
    requests: table(requestsOfSandbox()),
    scenarios: table(
      Object.entries(SCENARIOS).map(([name, { about, verdict }]) => [
        inCode(name),
        about,
        verdict.map(({ says }) => says).join('; '),
      ]),
    ),
    'exit codes': table(Object.entries(EXIT_MEANINGS_OF_SANDBOX)),
  }),
};

function routes(page: string): Row[] {
  const headings = page.match(/^### .*$/gm) ?? [];
  return [...ROUTES, ...OPEN_ROUTES].map(({ method, path, allowed }) => {
    const name = `${method.toUpperCase()} ${path}`;
    const heading = headings.find((one) => one.slice('### '.length).split(', ').includes(name));
    const shown = heading === undefined ? inCode(name) : `[${inCode(name)}](#${anchorsOf(heading, /###/)})`;
    return [shown, accessWords(allowed), BY_HAND];
  });
}

function settings(): Row[] {
  return Object.values(SETTINGS).map(({ name, fallback }) => [
    inCode(name),
    fallback === null ? (INSTEAD[name] ?? 'none') : inCode(fallback),
    BY_HAND,
  ]);
}

function problems(): Row[] {
  const met = DOCUMENTED.flatMap(({ operation }) => problemsOf(operation));
  // No route answers it: an address does.
  const all = [...met, { code: 'method_not_allowed', status: 405 }];
  return PROBLEM_CODES.map((code) => {
    const statuses = new Set(all.filter((one) => one.code === code).map(({ status }) => status));
    const exit = String(exitOfProblem(code));
    return [inCode(code), [...statuses].sort().join(', '), exit, PROBLEM_MEANINGS[code], BY_HAND];
  });
}

function hookAnswers(): Row[] {
  const refused = Object.values(ANSWERS)
    .filter(({ status }) => status >= 300)
    .map(({ status, body }) => [inCode(JSON.parse(body).title), String(status)] as const);
  // Every listener answers other addresses so.
  const all = new Map([['–', '202'], ...refused, [inCode('not_found'), '404']]);
  return [...all].map(([code, status]) => [code, status, BY_HAND, BY_HAND]);
}

/** Each transition that some fact makes, with every rule that makes it. */
function diagram(): string {
  const { moves } = explore();
  const edges = ORDER_STATES.flatMap((from) =>
    ORDER_STATES.flatMap((to) => {
      const rules = moves.get(`${from} → ${to}`)?.rules;
      return rules ? [`  ${from} --> ${to}: ${RULES.filter((rule) => rules.has(rule)).join(', ')}`] : [];
    }),
  );
  return ['```mermaid', 'stateDiagram-v2', '  [*] --> awaiting_payment', ...edges, '```'].join('\n');
}

function optionsOfSandbox(): Row[] {
  const { options = {} } = COMMANDS.find(({ name }) => name === 'serve') ?? {};
  return Object.entries(options).map(([name, { value, about }]) => [
    inCode(`--${name}${value === undefined ? '' : ` ${value}`}`),
    about,
  ]);
}

function faultsOfSandbox(): Row[] {
  return Object.entries(KNOWN_FAULTS).map(([name, { about, target, takes }]) => {
    const told = Object.entries(takes).map(([parameter, value]) => `${inCode(parameter)}: ${value}`);
    return [inCode(name), target, about, told.join('<br>') || 'nothing'];
  });
}

function requestsOfSandbox(): Row[] {
  // Only what is registered is looked at; nothing is called.
  const { stack } = controlRoutes({ options: {} } as unknown as Context);
  const requests = stack.flatMap(({ route }) => {
    const { path = '', methods = {} } = (route ?? {}) as { path?: string; methods?: Record<string, boolean> };
    return Object.keys(methods).map((method) => ({ path, method: method.toUpperCase() }));
  });
  const byPath = requests.sort((one, other) => (one.path < other.path ? -1 : Number(one.path > other.path)));
  return byPath.map(({ path, method }) => [inCode(`${method} ${path}`), BY_HAND]);
}
