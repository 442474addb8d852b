import { type Html, html } from '../../http/html.ts';
import { releaseVersion } from '../../release.ts';

const ADDRESSES = [
  ['docs', 'the private API, with every field, problem and a sample of every call'],
  ['openapi.json', 'the same as OpenAPI 3.1, for programs'],
  ['livez', 'whether the process answers'],
  ['readyz', 'whether it should get deliveries, or why not'],
  ['metrics', "for Prometheus. It needs the operator's token, which a browser does not send"],
] as const;

const COMMANDS = [
  ['settled attention', 'is any money in a wrong state, and what else needs a person?'],
  ['settled orders list --since 2d', 'what was asked, what was captured, and what is held or flagged?'],
  ['settled why ORDER', 'why does this order stand where it stands?'],
  ['settled doctor', 'is this installation well?'],
  ['settled tail', 'what is happening now?'],
  ['settled help', 'which commands are there?'],
] as const;

/**
 * The page of `/`: what is here, and how to ask further. It needs no token, so it says what is true of every settled of
 * this version, and nothing of this one's orders or settings.
 */
export function indexPage(): Html {
  return html`<main>
<h1>settled</h1>
<p class="title">settled is the merchant's side of a payment-link service: it opens links for a shop's orders, and marks each
order paid once, durably and for the right money.</p>
<p class="soft">Version ${releaseVersion()}. This is the private listener, for the shop and for the people who operate it.</p>
<h2>At this address</h2>
<dl>${ADDRESSES.map(
    ([path, about]) =>
      html`<div class="field"><dt><a href="${path}"><code>/${path}</code></a></dt><dd>${about}</dd></div>`,
  )}</dl>
<h2>In a terminal</h2>
<dl>${COMMANDS.map(
    ([command, asks]) => html`<div class="field"><dt><code>${command}</code></dt><dd>${asks}</dd></div>`,
  )}</dl>
<p class="soft">In a checkout, <code>settled</code> stands for <code class="whole">npm run -s settled --</code>.</p>
</main>`;
}
