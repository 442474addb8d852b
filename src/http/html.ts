import { createHash } from 'node:crypto';
import type { Response } from 'express';

/** HTML that may be put into a page as it is; only `html` makes it. */
export type Html = { readonly markup: string };

export type HtmlValue = Html | string | number | null | readonly HtmlValue[];

/** A template of HTML: it escapes every value that is not HTML itself. Null becomes nothing; lists are joined. */
export function html(parts: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return { markup: String.raw({ raw: parts }, ...values.map(markupOf)) };
}

function markupOf(value: HtmlValue): string {
  if (value === null) return '';
  if (typeof value !== 'object') return escapeText(String(value));
  return 'markup' in value ? value.markup : value.map(markupOf).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** For text between tags and for attribute values in quotes. */
function escapeText(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}

/** Sends a page with one inline style sheet. It loads and runs nothing else, and no page may frame it. */
export function sendPage(response: Response, page: { title: string; style: string; body: Html }): void {
  const { title, style, body } = page;
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${{ markup: style }}</style>
</head>
<body>
${body}
</body>
</html>
`;
  const hash = createHash('sha256').update(style).digest('base64');
  response
    .set({
      'content-security-policy':
        `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; ` +
        "frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    })
    .type('html')
    .send(document.markup);
}
