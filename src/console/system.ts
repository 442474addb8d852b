import { listSessions, listTokens, type SessionDocument, type TokenDocument } from '../api/access.ts';
import { doctor } from '../api/doctor.ts';
import type { Finding } from '../api/doctor_store.ts';
import { type InstallationDocument, showInstallation } from '../api/installation.ts';
import { PERSON_ROLES } from '../domain/access.ts';
import { capital, inLeases, inNumber } from '../explain/glossary.ts';
import { type Html, type HtmlValue, html } from '../http/app.ts';
import { ROLE_WORDS } from '../vocabulary.ts';
import { actionForm, type Column, definitions, table, tabs } from './components.ts';
import type { PageParts, Shown } from './layout.ts';
import { age, badge, duration, prose, stateBadge, whole } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, type View } from './view.ts';

/** The installation: what runs, whether it works, and who may use it. */

const PATH = '/system';
const DOCTOR = '/system/doctor';
const PEOPLE = '/system/people';

export async function showSystem(options: ConsoleOptions, view: View): Promise<Shown> {
  const { installation } = await showInstallation.load(options);
  const content = html`<div class="columns"><section class="card"><h2>settled</h2>${facts(view, installation)}</section>
<section class="card"><h2>Database</h2>${database(installation)}</section></div>
<section><h2>Replicas</h2>${replicas(view, installation)}</section>
${actions(view, installation)}
<section><p><a href="${hrefOf(view, '/bulk')}">See all bulk work</a></p></section>`;
  return partsOf(view, PATH, content);
}

function facts({ environment }: View, installation: InstallationDocument): Html {
  const { version, node, publicUrl, shopUrl, apiUrl, apiSlots, toleranceSeconds, currency } = installation;
  return definitions([
    ['Version', version],
    ['Node', node],
    ['Environment', environment === null ? null : badge(environment, 'wait')],
    ['The service delivers to', html`<code>${publicUrl}</code>`],
    ['Notices go to', shopUrl === null ? 'the feed alone' : html`<code>${shopUrl}</code>`],
    ["The service's API", apiUrl === null ? 'is not configured' : `${whole(apiSlots)} requests a minute`],
    ['Deliveries may be', `${duration(toleranceSeconds * 1000)} old`],
    ['Currency', currency],
  ]);
}

function database({ store, secretsKey, keepBodiesDays, lapsedLeases }: InstallationDocument): Html {
  return definitions([
    ['Engine', store.server],
    ['Name', html`<code>${store.name}</code>`],
    ['Durability, as declared', store.durabilityDeclared],
    ['Bodies and customers are kept', inNumber(keepBodiesDays, 'day', 'days')],
    ['Secrets key', html`<code>${secretsKey.id}</code><p class="soft">kept in ${secretsKey.place}</p>`],
    ['Expired leases', inLeases(lapsedLeases) || 'none'],
  ]);
}

function replicas(view: View, { replicas: rows }: InstallationDocument): Html {
  return table({
    caption: 'Replicas',
    columns: [
      {
        head: 'Replica',
        cell: ({ name, isThisOne }) =>
          html`<code>${name}</code>${isThisOne ? html` <span class="soft">this one</span>` : null}`,
      },
      { head: 'State', cell: ({ isAlive }) => (isAlive ? badge('alive', 'good') : badge('silent', 'bad')) },
      { head: 'Version', cell: ({ version }) => version },
      { head: 'Has in work', cell: ({ leases }) => inLeases(leases) || 'none' },
      { head: 'Secrets key', cell: ({ hasSameKey }) => (hasSameKey ? 'the same' : badge('another', 'bad')) },
      { head: 'Clock ahead', isNumber: true, cell: ({ skewMs }) => `${whole(skewMs)} ms` },
      { head: 'Started', cell: ({ startedAt }) => age(view, startedAt) },
      { head: 'Last sign of life', cell: ({ aliveAt }) => age(view, aliveAt) },
    ],
    rows,
    rowId: ({ name }) => name,
    empty: 'This is the only process that uses the database.',
  });
}

function actions(view: View, { store, apiUrl }: InstallationDocument): Html | null {
  if (!mayDo(view, 'operator')) return null;
  const forms = [
    ...(apiUrl === null ? [] : [catchUp(view)]),
    ...(mayDo(view, 'admin') && store.engine === 'sqlite' ? [backup(view)] : []),
    ...(mayDo(view, 'admin') ? [rotation(view)] : []),
  ];
  return forms.length === 0 ? null : html`<section><h2>Do</h2>${forms}</section>`;
}

/** The first step only counts: its answer has the second. */
function catchUp(view: View): Html {
  return actionForm(view, {
    id: 'catch-up',
    action: '/v1/admin/reconcile',
    summary: 'Catch up: ask the service about every link that can still be paid',
    preview: 'After an outage, settled does this on its own. See first what it costs; settled asks nothing yet.',
    button: 'See what it costs',
    values: { dryRun: 'true' },
  });
}

function backup(view: View): Html {
  return actionForm(view, {
    id: 'backup',
    action: '/v1/admin/backup',
    summary: 'Back up the database',
    preview:
      'Writes a consistent copy next to the database while settled keeps running. The copy does not contain the secrets key.',
    button: 'Write a copy',
  });
}

function rotation(view: View): Html {
  return actionForm(view, {
    id: 'rotate-key',
    action: '/v1/admin/rotate-key',
    summary: 'Change the secrets key',
    preview:
      'Creates a new key and encrypts every signing secret with it. Keep a copy of the new key, separate from the backups.',
    button: 'Change the key',
    isDanger: true,
  });
}

/** The checks send a delivery to settled itself and ask the service: they run when this page is opened, and not again alone. */
export async function showDoctor(options: ConsoleOptions, view: View): Promise<Shown> {
  const { checks } = await doctor.load(options);
  const bad = checks.filter(({ status }) => status !== 'ok').length;
  // What is wrong comes first; what is equally wrong in the order of the checks.
  const rows = WORST_FIRST.flatMap((verdict) => checks.filter(({ status }) => status === verdict));
  const columns: Column<Finding>[] = [
    { head: 'Check', cell: ({ name }) => name },
    { head: 'Verdict', cell: ({ status }) => stateBadge(status) },
    { head: 'Found', isText: true, cell: ({ detail }) => prose(view, detail) },
  ];
  const content = html`<p class="lead">${bad === 0 ? `All ${checks.length} checks are well.` : `${bad} of ${inNumber(checks.length, 'check', 'checks')} found something.`}</p>
${table({ caption: 'Checks', columns, rows, rowId: ({ name }) => name })}
<p class="actions"><a class="button quiet" href="${hrefOf(view, DOCTOR)}">Check again</a> <span class="soft">settled sends a delivery to itself through the public address, and asks the service which merchant it is.</span></p>`;
  return { ...partsOf(view, DOCTOR, content), isStill: true };
}

const WORST_FIRST = ['failing', 'warning', 'ok'] as const;

export async function showPeople(options: ConsoleOptions, view: View): Promise<Shown> {
  const [{ tokens }, { sessions }] = await Promise.all([listTokens.load(options), listSessions.load(options)]);
  const content = html`<section><h2>Tokens</h2>
<p class="soft">A person signs in with a token. Give each person their own token: the audit shows its name. settled shows a token only once, when you create it.</p>
${definitions(Object.entries(ROLE_WORDS).map(([role, does]) => [capital(role), does]))}
${tokenTable(view, tokens)}${mayDo(view, 'admin') ? newToken(view) : null}</section>
<section><h2>Signed-in browsers</h2>
<p class="soft">Each row is a browser in which a person is signed in. A session ends after 12 hours without use, and after 7 days at the latest.</p>${sessionTable(view, sessions)}</section>`;
  return partsOf(view, PEOPLE, content);
}

function tokenTable(view: View, tokens: readonly TokenDocument[]): Html {
  return table({
    caption: 'Named tokens',
    columns: [
      { head: 'Name', cell: ({ name }) => html`<bdi>${name}</bdi>` },
      { head: 'Role', cell: ({ role }) => role },
      { head: 'State', cell: (token) => tokenState(view, token) },
      { head: 'Made', cell: ({ createdAt }) => age(view, createdAt) },
      { head: 'Expires', cell: ({ expiresAt }) => (expiresAt === null ? 'never' : age(view, expiresAt)) },
      ...(mayDo(view, 'admin') ? [{ head: 'Action', cell: (token: TokenDocument) => revocation(view, token) }] : []),
    ],
    rows: tokens,
    // A name may be used again once its token was revoked.
    rowId: ({ name, createdAt }) => `${name} ${createdAt}`,
    empty: 'There are no named tokens: only the one that settled was started with.',
  });
}

function tokenState({ nowMs }: View, { revokedAt, expiresAt }: TokenDocument): Html {
  if (revokedAt !== null) return badge('revoked', 'quiet');
  return expiresAt !== null && Date.parse(expiresAt) <= nowMs ? badge('expired', 'quiet') : badge('valid', 'good');
}

function revocation(view: View, { name, revokedAt }: TokenDocument): HtmlValue {
  if (revokedAt !== null) return null;
  return actionForm(view, {
    id: `revoke-${encodeURIComponent(name)}`,
    action: `/v1/tokens/${encodeURIComponent(name)}/revoke`,
    summary: 'Revoke',
    preview: html`The token of <bdi>${name}</bdi> and every session that it signed in end at once.`,
    button: 'Revoke the token',
    isDanger: true,
  });
}

const LASTS = {
  '90d': '90 days',
  '365d': 'a year',
  '30d': '30 days',
  '7d': '7 days',
  '1d': 'a day',
  '': 'until it is revoked',
};

/** What was typed is kept if settled refuses it. */
function newToken(view: View): Html {
  const refused = view.refused?.action === '/v1/tokens' ? view.refused.typed : null;
  const choice = (value: string, text: string, name: string, first: string) =>
    html`<option value="${value}"${value === (refused?.get(name) ?? first) ? html` selected` : null}>${text}</option>`;
  return html`<details class="action" id="new-token"${refused === null ? null : html` open`}><summary>Make a token</summary>
<form method="post" action="${hrefOf(view, '/v1/tokens')}"><input type="hidden" name="back" value="${hrefOf(view, PEOPLE)}">
<div class="fields"><div class="field"><label for="token-name">Name of the person</label>
<input class="input" id="token-name" name="name" value="${refused?.get('name') ?? ''}" maxlength="64" autocomplete="off" spellcheck="false" required></div>
<div class="field"><label for="token-role">Role</label>
<select class="input" id="token-role" name="role">${PERSON_ROLES.map((role) => choice(role, `${role}: ${ROLE_WORDS[role]}`, 'role', 'viewer'))}</select></div>
<div class="field"><label for="token-expires">Valid for</label>
<select class="input" id="token-expires" name="expires">${Object.entries(LASTS).map(([value, text]) => choice(value, text, 'expires', '90d'))}</select></div></div>
<div class="preview">The next page shows the token once. settled cannot show it again.</div>
<button class="button">Create the token</button></form></details>`;
}

function sessionTable(view: View, sessions: readonly SessionDocument[]): Html {
  return table({
    caption: 'Signed-in browsers',
    columns: [
      {
        head: 'Who',
        cell: ({ id, name }) => {
          const isThisOne = view.session?.id === id;
          return html`<bdi>${name}</bdi>${isThisOne ? html` <span class="soft">this browser</span>` : null}`;
        },
      },
      { head: 'Role', cell: ({ role }) => role },
      { head: 'Signed in', cell: ({ createdAt }) => age(view, createdAt) },
      { head: 'Last used', cell: ({ usedAt }) => age(view, usedAt) },
      ...(mayDo(view, 'admin') ? [{ head: 'Action', cell: (session: SessionDocument) => ending(view, session) }] : []),
    ],
    rows: sessions,
    rowId: ({ id }) => id,
    empty: 'No browser is signed in.',
  });
}

function ending(view: View, { id, name }: SessionDocument): Html {
  return actionForm(view, {
    id: `end-${id}`,
    action: `/v1/sessions/${id}/end`,
    summary: 'End',
    preview: html`Signs this browser of <bdi>${name}</bdi> out, at every replica.`,
    button: 'End the session',
    isDanger: true,
  });
}

function partsOf(view: View, path: string, content: HtmlValue): PageParts {
  const pages = { Installation: PATH, Checks: DOCTOR, People: PEOPLE };
  const body = html`<h1>System</h1>${tabs(view, { label: 'System', pages, path })}${content}`;
  return { title: 'System', here: '/system', body };
}
