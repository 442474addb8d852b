/** Markup that is safe to send. Only the tag `html` makes it. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | null | undefined | false | readonly Value[];

/** A template of markup. Escapes every value that is not markup itself. Attributes must be quoted. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.map((string, at) => string + render(values[at])).join(''));
}

function render(value: Value): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(render).join('');
  return String(value).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The address if it may stand in a link; null if it is not http or https. */
export function safeHref(address: string | null): string | null {
  if (address === null) return null;
  const url = URL.parse(address);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? url.href : null;
}

type PageOptions = {
  title: string;
  body: Html;
  /** The browser goes there after `RECEIPT_SECONDS`. */
  goesTo?: string | null;
};

/** How long the customer sees the receipt before the browser continues to the shop. */
const RECEIPT_SECONDS = 3;

export function page({ title, body, goesTo = null }: PageOptions): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta name="color-scheme" content="light dark">
${goesTo !== null && html`<meta http-equiv="refresh" content="${RECEIPT_SECONDS};url=${goesTo}">`}
<title>${title}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/page.css">
<script type="module" src="/assets/page.js"></script>
</head>
<body>
<header class="banner"><p><strong>Sandbox.</strong> No money is real. Never type in the data of a real card.</p></header>
${body}
</body>
</html>
`.text;
}

/** A page with nothing but a message. */
export function messagePage({ title, text }: { title: string; text: string }): string {
  const body = html`<main class="lone">
<section class="card message">${icon('unknown')}<h1>${title}</h1><p>${text}</p></section>
</main>`;
  return page({ title, body });
}

const ICONS = {
  done: html`<path d="M7 12.5l3.5 3.5L17 8.5"/>`,
  closed: html`<path d="M8 8l8 8M16 8l-8 8"/>`,
  late: html`<path d="M12 7v5.5l3.5 2"/>`,
  unknown: html`<path d="M12 7v6M12 16.5v.01"/>`,
};

/** A round sign, beside words that say the same. */
export function icon(name: keyof typeof ICONS): Html {
  return html`<svg class="sign ${name}" viewBox="0 0 24 24" aria-hidden="true"><circle cx="12" cy="12" r="11"/>${ICONS[name]}</svg>`;
}
