/** Markup that is safe to send. Only the tag below makes it. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = Html | string | number | null | undefined | false | readonly Value[];

/** A template of markup: whatever is put into it is escaped, unless it is markup itself. Attributes must be quoted. */
export function html(strings: TemplateStringsArray, ...values: Value[]): Html {
  return new Html(strings.map((string, at) => string + render(values[at])).join(''));
}

function render(value: Value): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(render).join('');
  return String(value).replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** The address as a link may carry it; null for anything that is not http or https. */
export function safeHref(address: string | null): string | null {
  if (address === null) return null;
  const url = URL.parse(address);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? url.href : null;
}
