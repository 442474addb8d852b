/** The places of a page that links within it may name: its headings of this level, as `#` or more say it. */
export function anchorsOf(page: string, level: RegExp): string[] {
  return [...page.matchAll(new RegExp(`^${level.source} (.*)$`, 'gm'))].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, '')
      .replaceAll(' ', '-'),
  );
}

/** What the links of a page within it name. */
export function targetsOf(page: string): string[] {
  return [...page.matchAll(/\]\(#([^)]*)\)/g)].map(([, target]) => target as string);
}
