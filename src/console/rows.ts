import type { Request } from 'express';
import { showEvent } from '../api/events.ts';
import { showNotice } from '../api/notices.ts';
import { words } from '../explain/glossary.ts';
import { type Html, html } from '../http/app.ts';
import { OUTCOME_WORDS } from '../vocabulary.ts';
import { actionForm, definitions } from './components.ts';
import type { Shown } from './layout.ts';
import { statusBadge, time, timeAndAge } from './values.ts';
import { type ConsoleOptions, hrefOf, mayDo, orderPath, type View } from './view.ts';

/** Settles one event again: what it will do, and a button. */
export function replayForm(view: View, id: string, summary: string): Html {
  return actionForm(view, {
    id: `replay-${id}`,
    action: `/v1/events/${id}/replay`,
    summary,
    label: `${summary}: event ${id}`,
    preview:
      'settled reads what the service sent once more. What was counted before is not counted twice; if something was missed, ' +
      'the order changes and the shop is told.',
    button: `Settle event ${id} again`,
  });
}

/** Sends one notice again: what it will do, and a button. */
export function resendForm(view: View, id: string, summary: string): Html {
  return actionForm(view, {
    id: `resend-${id}`,
    action: `/v1/notices/${encodeURIComponent(id)}/resend`,
    summary,
    label: `${summary}: notice ${id}`,
    preview: 'settled sends the same notice again, with the same id. A shop that has already processed it ignores it.',
    button: 'Send it now',
  });
}

/** One event or notice, with its body as bytes that are shown and never carried out. */

export async function showEventPage(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const id = String(request.params.id);
  const { event } = await showEvent.load(options, { id });
  const { reading, reference, status, fault, bodyText, bodyBase64, bodyDropped } = event;
  const what = reading === null ? 'Event' : "The service's answer, event";
  const again = mayDo(view, 'operator') && !bodyDropped && (status === 'done' || status === 'dead');
  const body = html`<h1>${what} ${event.id} ${statusBadge(status)}</h1>
${definitions([
  ['Order', html`<a href="${hrefOf(view, orderPath(reference))}">${reference}</a>`],
  ["The service's id", event.eventId],
  [reading === null ? 'Type' : 'Why settled asked', event.type],
  ['Link', event.linkId],
  ['Received', timeAndAge(view, event.receivedAt)],
  ['Signed', reading === null ? html`${time(view, Number(event.timestamp))} <code>${event.timestamp}</code>` : null],
  ['Reading', reading],
  [
    'Result',
    event.outcome === null
      ? null
      : `${OUTCOME_WORDS[event.outcome]}${event.rule === null ? '' : `: ${words.rule(event.rule)}`}`,
  ],
  ['Fault', fault === null ? null : `${fault.code}: ${fault.message}`],
  ['Attempts', event.attempt],
  ['Came again', event.duplicates === 0 ? null : `${event.duplicates} times, with the same content`],
  ['Conflict', event.conflict ? 'the same event id came before with other content' : null],
  [status === 'dead' ? 'Given up' : 'Settled', timeAndAge(view, event.endedAt)],
  ['SHA-256 of the body', html`<code>${event.bodySha256}</code>`],
])}
${again ? replayForm(view, event.id, 'Settle it again') : null}
<section><h2>Body</h2>${bytes({ text: bodyText, base64: bodyBase64 })}</section>`;
  return { title: `Event ${event.id}`, here: '/deliveries', body };
}

const HEX_BYTES_MAX = 16_384;

/** The bytes as text; in hexadecimal if they are no UTF-8. */
function bytes({ text, base64 }: { text: string | null; base64: string | null }): Html {
  if (base64 === null) return html`<p class="soft">settled dropped the bytes after SETTLED_KEEP_BODIES.</p>`;
  if (text !== null) return html`<pre tabindex="0"><code>${text}</code></pre>`;
  const all = Buffer.from(base64, 'base64');
  const shown = all
    .subarray(0, HEX_BYTES_MAX)
    .toString('hex')
    .replace(/(..)(?=.)/g, '$1 ');
  return html`<p>The bytes are not UTF-8; in hexadecimal${all.length > HEX_BYTES_MAX ? html`, the first ${HEX_BYTES_MAX} of ${all.length}` : null}:</p>
<pre tabindex="0"><code>${shown}</code></pre>`;
}

export async function showNoticePage(options: ConsoleOptions, view: View, request: Request): Promise<Shown> {
  const id = String(request.params.id);
  const { notice } = await showNotice.load(options, { id });
  const { reference, status, fault, answer, type } = notice;
  const mayResend = mayDo(view, 'operator') && options.canTell && status !== 'leased';
  const body = html`<h1>${type} ${statusBadge(status)}</h1>
${definitions([
  ['Order', html`<a href="${hrefOf(view, orderPath(reference))}">${reference}</a>`],
  ['Notice', html`<code>${notice.id}</code>`],
  ['Version of the order', notice.version],
  ['Made', timeAndAge(view, notice.createdAt)],
  ['Attempts', notice.attempt],
  ['Next attempt', notice.dueAt === null || status !== 'pending' ? null : timeAndAge(view, notice.dueAt)],
  [status === 'dead' ? 'Given up' : 'Ended', timeAndAge(view, notice.endedAt)],
  ['The shop answered', answer === null ? null : html`${answer.status} <code>${answer.body}</code>`],
  ['Fault', fault === null ? null : `${fault.code}: ${fault.message}`],
])}
${mayResend ? resendForm(view, notice.id, 'Send it again') : null}
<section><h2>Body</h2><pre tabindex="0"><code>${JSON.stringify(notice.body, null, 2)}</code></pre></section>`;
  return { title: type, here: '/shop', body };
}
