/** Parts of the documents that are generated. */

/** In the place of what only a person can write about a new name. */
export const TO_WRITE = 'TO BE WRITTEN';

/** A cell that the page has by hand, and keeps. */
export const BY_HAND = null;
export type Row = readonly (string | typeof BY_HAND)[];
type Render = (block: string, page: string) => string;

/** Renders each block of a page: what follows `<!-- generated: NAME -->`, up to the next empty line. */
export function blocks(renders: Readonly<Record<string, Render>>): (page: string) => string {
  return (page) => {
    const missing = new Set(Object.keys(renders));
    const whole = page.replace(
      /(?<=^<!-- generated: (.*) -->\n)(?:.+(?:\n(?=.)|$))*/gm,
      (block: string, name: string) => {
        if (!missing.delete(name)) throw new Error(`nothing is generated as "${name}"`);
        return (renders[name] as Render)(block, page);
      },
    );
    if (missing.size > 0) throw new Error(`the page has no mark for ${[...missing].join(', ')}`);
    return whole;
  };
}

/** A table below its own head. A row is known by its first cell or, if that is by hand, by those that are not. */
export function table(rows: readonly Row[]): (block: string) => string {
  const known = (row: Row, like: Row) =>
    row[0] === like[0] || (like[0] === BY_HAND && like.every((cell, at) => cell === BY_HAND || cell === row[at]));
  return (block) => {
    const [head, rule, ...lines] = block.split('\n');
    const before = lines.map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    const written = rows.map((row) => {
      const kept = before.find((one) => known(one, row)) ?? [];
      return `| ${row.map((cell, at) => cell ?? (kept[at] || TO_WRITE)).join(' | ')} |`;
    });
    return [head, rule, ...written].join('\n');
  };
}

/** A list of names in this order, each with its text by hand. */
export function list(names: readonly string[]): (block: string) => string {
  return (block) => {
    const before = block.split(/\n(?=- )/);
    const item = (name: string) => `- ${inCode(name)}: `;
    return names.map((name) => before.find((one) => one.startsWith(item(name))) ?? item(name) + TO_WRITE).join('\n');
  };
}

/** Names as pages write them. */
export function inCode(...names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
