/** Markup that may be sent as it is. Made by the tag below alone. */
export type Html = { readonly markup: string };

type Part = Html | string | number | null | false | readonly Part[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Markup with texts put in, each escaped. Attributes must stand in quotes. */
export function html({ raw }: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { markup: raw.map((text, at) => text + (at < parts.length ? write(parts[at] as Part) : '')).join('') };
}

function write(part: Part): string {
  if (part === null || part === false) return '';
  if (typeof part === 'string' || typeof part === 'number') {
    return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character] as string);
  }
  return 'markup' in part ? part.markup : part.map(write).join('');
}
