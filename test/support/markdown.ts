/** The anchors of a page's headings of this level (`#` or more). */
export function anchorsOf(page: string, level: RegExp): string[] {
  return [...page.matchAll(new RegExp(`^${level.source} (.*)$`, 'gm'))].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** The anchors that a page's own links name. */
export function targetsOf(page: string): string[] {
  return [...page.matchAll(/\]\(#([^)]*)\)/g)].map(([, target]) => target as string);
}

/** The blocks of a page in this language. */
export function blocksIn(page: string, language = 'sh'): string[] {
  return [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, block]) => block as string);
}
