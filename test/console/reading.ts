/** The words of a page, without its tags. */
export function textOf(markup: string): string {
  const body = markup.slice(markup.indexOf('<main'));
  const words = body.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
  const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" };
  return words.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity] as string).replace(/ ([.,;:])/g, '$1');
}
