/** The words of a page, without its tags. */
export function textOf(markup: string): string {
  const body = markup.slice(markup.indexOf('<main'));
  const words = body.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
  return words.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] as string).replace(/ ([.,;:])/g, '$1');
}

/** The tags of a page with the names of their attributes: what a text from outside must not change. */
export function skeleton(markup: string): string[] {
  return (markup.match(/<[^>]*>/g) ?? []).map((tag) => tag.replace(/="[^"]*"/g, ''));
}
