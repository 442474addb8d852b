import { OPERATOR_TOKEN } from './app.ts';

/**
 * A browser that knows neither script nor style: it opens pages, reads their words and sends their forms, each with the
 * fields that the page gives it. What script, style, keys and a person's eyes need is shown by browser.ts.
 */
export type PlainBrowser = {
  open(path: string): Promise<void>;
  /** Presses the only button of a form whose name has these words, after this was typed. `within`: an element. */
  press(button: string, typed?: Record<string, string>, within?: string): Promise<void>;
  /** Follows the link with these words. */
  follow(link: string): Promise<void>;
  status(): number;
  url(): URL;
  /** The page, or its first element of a name, `.class`, `#id`, or `#start*` of an id; '' if there is none. */
  markup(selector?: string): string;
  text(selector?: string): string;
  /** What the field with this id holds. */
  field(id: string): string;
};

/** @param token signs it in at the console with this one; null for pages without a session */
export function plainBrowser(base: string, token: string | null = null): PlainBrowser {
  let page = { status: 0, url: new URL(base), markup: '', cookie: '' };
  /** `from`: the page that leads there; an address that a person opens has none. */
  const load = async (to: URL, from: URL | null = null, body?: URLSearchParams): Promise<void> => {
    const site = from === null ? 'none' : from.origin === to.origin ? 'same-origin' : 'same-site';
    const headers = { cookie: page.cookie, 'sec-fetch-site': site, accept: 'text/html' };
    const sent =
      body === undefined || from === null ? { headers } : { headers: { ...headers, origin: from.origin }, body };
    const response = await fetch(to, { method: body === undefined ? 'GET' : 'POST', ...sent, redirect: 'manual' });
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? page.cookie;
    page = { status: response.status, url: to, markup: await response.text(), cookie };
    const next = response.headers.get('location');
    if (next !== null) await load(new URL(next, to), from);
  };
  const markup = (selector = 'html'): string => elementIn(page.markup, tagOf(selector));
  const browser: PlainBrowser = {
    open: async (path) => {
      await load(new URL(path, base));
      if (token === null || page.url.pathname !== '/sign-in') return;
      await browser.press('Sign in', { token });
      await load(new URL(path, base));
    },
    press: async (button, typed = {}, within) => {
      const forms = [...markup(within).matchAll(/<form\b.*?<\/form>/gs)].map(([form]) => form);
      const [form, another] = forms.filter((one) => buttonsOf(one).some((name) => name.includes(button)));
      if (form === undefined || another !== undefined) {
        throw new Error(
          `the button "${button}" is there ${form === undefined ? 'never' : 'twice'}: ${wordsOf(page.markup)}`,
        );
      }
      const fields = fieldsOf(form);
      for (const [name, value] of Object.entries(typed)) {
        if (!fields.has(name)) throw new Error(`the form of "${button}" has no field ${name}: ${form}`);
        fields.set(name, value);
      }
      for (const [tag] of form.matchAll(/<\w+\b[^>]* required\b[^>]*>/g)) {
        const name = attribute(tag, 'name') ?? '';
        if (fields.get(name) === '') throw new Error(`the form of "${button}" needs ${name}`);
      }
      const to = new URL(attribute(form, 'action') ?? '', page.url);
      if (attribute(form, 'method') === 'post') return load(to, page.url, fields);
      return load(new URL(`?${fields}`, to), page.url);
    },
    follow: async (link) => {
      const links = [...page.markup.matchAll(/<a\b.*?<\/a>/gs)].map(([one]) => one);
      const found = links.find((one) => wordsOf(one).trim().startsWith(link));
      if (found === undefined) throw new Error(`there is no link "${link}": ${wordsOf(page.markup)}`);
      await load(new URL(attribute(found, 'href') ?? '', page.url), page.url);
    },
    status: () => page.status,
    url: () => page.url,
    markup,
    text: (selector) => wordsOf(markup(selector)).trim(),
    field: (id) => heldBy(markup(`#${id}`)) ?? '',
  };
  return browser;
}

/** Signed in as the operator of the tests. */
export function plainOperator({ apiUrl }: { apiUrl: string }): PlainBrowser {
  return plainBrowser(apiUrl, OPERATOR_TOKEN);
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"' };

/** The text that this part of a page stands for. */
export function unescaped(text: string): string {
  return text.replace(/&(?:#(\d+)|(\w+));/g, (entity, code?: string, name = '') =>
    code === undefined ? (ENTITIES[name] ?? entity) : String.fromCodePoint(Number(code)),
  );
}

/** Its words, without its tags. */
export function wordsOf(markup: string): string {
  const words = markup.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  return unescaped(words).replace(/ ([.,;:])/g, '$1');
}

function attribute(tag: string, name: string): string | undefined {
  const [, value] = new RegExp(`^<[^>]* ${name}="([^"]*)"`).exec(tag) ?? [];
  return value === undefined ? undefined : unescaped(value);
}

/** What matches the tag of such an element. */
function tagOf(selector: string): string {
  if (selector.startsWith('#')) return `<\\w+\\b[^>]* id="${selector.slice(1).replace('*', '[^"]*')}"`;
  return selector.startsWith('.') ? `<\\w+\\b[^>]* class="(?:[^"]* )?${selector.slice(1)}[ "]` : `<${selector}\\b`;
}

/** The element whose tag matches, to its end. */
function elementIn(markup: string, tag: string): string {
  const found = new RegExp(tag).exec(markup);
  if (found === null) return '';
  const rest = markup.slice(found.index);
  const [, name = ''] = /^<(\w+)/.exec(rest) ?? [];
  let depth = 0;
  for (const { 0: one, 1: end, index } of rest.matchAll(new RegExp(`<(/?)${name}\\b[^>]*>`, 'g'))) {
    depth += end === '' && name !== 'input' ? 1 : -1;
    if (depth <= 0) return rest.slice(0, index + one.length);
  }
  return rest;
}

function buttonsOf(form: string): string[] {
  return [...form.matchAll(/<button\b(?![^>]* (?:disabled|type="(?:button|reset)")).*?<\/button>/gs)].map(
    ([button]) => attribute(button, 'aria-label') ?? wordsOf(button),
  );
}

/** What a form sends as it stands. */
function fieldsOf(form: string): URLSearchParams {
  const tags = [...form.matchAll(/<(?:input|select|textarea)\b(?![^>]* disabled)[^>]*>/g)];
  const fields = new URLSearchParams();
  for (const { 0: tag, index } of tags) {
    const name = attribute(tag, 'name');
    const isLeftOut = /type="(?:radio|checkbox)"/.test(tag) && !/ checked/.test(tag);
    if (name === undefined || isLeftOut) continue;
    fields.append(name, heldBy(elementIn(form.slice(index), '^<')) ?? '');
  }
  return fields;
}

function heldBy(field: string): string | undefined {
  if (field.startsWith('<input')) return attribute(field, 'value');
  if (field.startsWith('<textarea')) return unescaped(field.replace(/<[^>]*>/g, ''));
  const [chosen = ''] = /<option\b[^>]* selected[^>]*>/.exec(field) ?? /<option\b[^>]*>/.exec(field) ?? [];
  return attribute(chosen, 'value');
}
