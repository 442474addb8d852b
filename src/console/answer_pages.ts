import { type Html, type HtmlValue, html } from '../http/app.ts';
import { bulkAnswer } from './bulk_page.ts';
import { actionForm, definitions } from './components.ts';
import type { PageParts, Shown } from './layout.ts';
import { count, duration, time } from './values.ts';
import { hrefOf, type View } from './view.ts';

/** Pages for API answers that a person must read, because they are shown only once or need a decision. */

// biome-ignore lint/suspicious/noExplicitAny: documents of several operations, each of which its own schema describes
type Answered = any;

type AnswerPage = (view: View, answered: Answered, typed: ReadonlyMap<string, string>) => Shown | null;

/** By the operation's id. Null if the form leads back to its page, as after every other operation. */
const PAGES: Readonly<Record<string, AnswerPage>> = {
  startBulk: bulkAnswer,
  addToken: (view, { token }) =>
    answered(view, 'The token was created', {
      text: html`This is the token of <bdi>${token.name}</bdi>. settled cannot show it again: hand it over now.`,
      facts: [
        ['Token', html`<code class="secret">${token.secret}</code>`],
        ['Role', token.role],
        ['Expires', token.expiresAt === null ? 'never' : time(view, token.expiresAt)],
      ],
      back: ['/system/people', 'Back to the tokens'],
    }),
  makeBackup: (view, { backup }) =>
    answered(view, 'The backup is written', {
      text: backup.notIncluded,
      facts: [
        ['File', html`<code>${backup.path}</code>`],
        ['Size', `${Math.ceil(backup.bytes / 1024)} KiB`],
      ],
      back: ['/system', 'Back to the system'],
    }),
  rotateKey: (view, { rotation }) =>
    answered(view, 'The secrets key was changed', {
      text: rotation.note,
      facts: [
        ['New key', html`<code>${rotation.keyId}</code>`],
        ['Previous key', html`<code>${rotation.previousKeyId}</code>`],
        ['Secrets encrypted again', String(rotation.resealed)],
        ['Kept in', rotation.keyPlace],
      ],
      back: ['/system', 'Back to the system'],
    }),
  reconcile: (view, { dryRun, links, etaSeconds }) =>
    dryRun !== true
      ? null
      : answered(view, 'What a catch-up costs', {
          text:
            links === 0
              ? 'No link can still be paid, so there is nothing to check.'
              : `settled would ask about ${count(links, { one: 'link', many: 'links' })}, with one request each. Nothing was asked so far.`,
          facts: [['It takes at most', duration(etaSeconds * 1000)]],
          form: links === 0 ? null : catchUp(view),
          back: ['/system', 'Back to the system'],
        }),
};

type Answering = { operation: string; document: object | undefined; typed: ReadonlyMap<string, string> };

/** The page for what an operation answered to a form; null if there is none. `operation`: its id; `typed`: the form's fields. */
export function answerPage(view: View, { operation, document, typed }: Answering): Shown | null {
  const make = Object.hasOwn(PAGES, operation) ? PAGES[operation] : undefined;
  return document === undefined ? null : (make?.(view, document, typed) ?? null);
}

function catchUp(view: View): Html {
  return actionForm(view, {
    id: 'catch-up',
    action: '/v1/admin/reconcile',
    summary: 'Ask now',
    isOpen: true,
    preview:
      'All of them become due now. settled asks as fast as its API budget allows, and keeps settling deliveries in the meantime.',
    button: 'Check all of them',
    values: { dryRun: 'false' },
    back: '/system',
  });
}

function answered(
  view: View,
  title: string,
  given: {
    text: HtmlValue;
    facts: readonly (readonly [string, HtmlValue])[];
    form?: Html | null;
    back: readonly [string, string];
  },
): PageParts {
  const [path, words] = given.back;
  const body = html`<h1>${title}</h1><p class="notice done">${given.text}</p>
${definitions(given.facts)}${given.form ?? null}<p class="onward"><a href="${hrefOf(view, path)}">${words}</a></p>`;
  return { title, here: '/system', body, isStill: true };
}
