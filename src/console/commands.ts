import { type Html, html } from '../http/app.ts';
import { link } from './components.ts';
import { formHref, mayDo, orderPath, type View } from './view.ts';

/** What pages show in place of the commands that the API's sentences name: a reader with a browser has no terminal. */

/** What a link of a page needs. */
export type Linking = Pick<View, 'prefix' | 'path' | 'session'>;

const WORD = String.raw`(?:'(?:[^']|'\\'')*'|[\w.:@%+=/-]*[\w@%+=/-])`;
const REASON = '(?: --reason TEXT)?';

/** The commands that have a place in the console; every other one stays as it is. */
const COMMANDS: readonly [pattern: string, show: (view: Linking, word: string) => Html][] = [
  [`orders resolve (${WORD}) --accept${REASON}`, (view, order) => formAt(view, orderPath(order), 'accept', 'Accept…')],
  [`orders resolve (${WORD}) --reject${REASON}`, (view, order) => formAt(view, orderPath(order), 'reject', 'Reject…')],
  [`orders cancel (${WORD})`, (view, order) => formAt(view, orderPath(order), 'cancel', 'Cancel the order…')],
  [`orders check (${WORD})`, (view, order) => link(view, `${orderPath(order)}#actions`, 'Ask the service now')],
  [`why (${WORD})`, (view, order) => link(view, orderPath(order), `order ${order}`)],
  [
    'events replay (\\d+(?: \\d+)*)',
    (view, ids) => html`${ids.split(' ').map((id, at) => [at === 0 ? null : ', ', replayOf(view, id)])}`,
  ],
  ['notices resend (msg_[\\w-]+)', (view, id) => formAt(view, `/notices/${id}`, `resend-${id}`, 'send it again…')],
  [`events show (\\d+)`, (view, id) => link(view, `/events/${id}`, `event ${id}`)],
  [`attention end (\\d+)${REASON}`, (view, id) => formHere(view, `end-${id}`, 'End it…')],
  ['orders list --state (\\w+)', (view, state) => link(view, `/orders?state=${state}`, `orders that are ${state}`)],
  ['orders list', (view) => link(view, '/orders', 'the orders')],
  ['notices list --status (\\w+)', (view, status) => link(view, `/shop?status=${status}`, 'the notices')],
  [
    'bulk resend --status (dead|pending)(?: \\(with --dry-run it only counts them\\))?',
    (view, status) => link(view, `/shop?status=${status}`, 'send them again'),
  ],
  ['rejections', (view) => link(view, '/deliveries/rejections', 'the rejected deliveries')],
  ['attention', (view) => link(view, '/attention', 'what needs attention')],
  ['doctor', (view) => link(view, '/system/doctor', 'all checks')],
];

const PATTERNS = COMMANDS.map(([pattern, show]) => ({ whole: new RegExp(`^settled ${pattern}$`), show }));
const ANY = new RegExp(
  `settled (?:${COMMANDS.map(([pattern]) => pattern.replace(/(?<!\\)\((?!\?)/g, '(?:')).join('|')})(?![\\w-])`,
  'g',
);

/** Replaces the commands in a sentence; `show` makes markup of the rest. */
export function inPlaceOfCommands(view: Linking, sentence: string, show: (text: string) => Html): Html {
  const parts: Html[] = [];
  let end = 0;
  for (const { 0: command, index } of sentence.matchAll(ANY)) {
    parts.push(show(sentence.slice(end, index)), placeOf(view, command));
    end = index + command.length;
  }
  return html`${parts}${show(sentence.slice(end))}`;
}

function placeOf(view: Linking, command: string): Html {
  for (const { whole, show } of PATTERNS) {
    const match = whole.exec(command);
    if (match !== null) return show(view, unquoted(match[1] ?? ''));
  }
  return html`<code>${command}</code>`;
}

/** Reverses `shellWord` of the sentences. */
function unquoted(word: string): string {
  return word.startsWith("'") ? word.slice(1, -1).replaceAll("'\\''", "'") : word;
}

function replayOf(view: Linking, id: string): Html {
  return formAt(view, `/events/${id}`, `replay-${id}`, `settle event ${id} again…`);
}

/** A form of another page. A reader who may not use it is told so. */
function formAt(view: Linking, path: string, id: string, text: string): Html {
  return formHere({ ...view, path }, id, text);
}

function formHere(view: Linking, id: string, text: string): Html {
  return mayDo(view, 'operator') ? html`<a href="${formHref(view, id)}">${text}</a>` : html`${text} (an operator may)`;
}
