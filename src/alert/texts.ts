import type { AlertMessage } from '../explain/alert_message.ts';

/** A message as a person gets it: in a chat, and as a mail. */

/** Chats refuse longer texts: the strictest known limit is 2 000 characters. */
const CHAT_LENGTH_MAX = 1_900;
const MAIL_COLUMNS = 60;

/** As many lines as a chat shows, and how many more there are. */
export function chatText({ title, lines, end }: AlertMessage): string {
  const last = `${calm(end.words)}${end.link === null ? '' : ` ${end.link}`}`.slice(0, CHAT_LENGTH_MAX / 2);
  const shown = [title];
  let left = CHAT_LENGTH_MAX - title.length - last.length - 40;
  for (const [index, { words, link }] of lines.entries()) {
    const line = `- ${calm(words)}${link === null ? '' : ` ${link}`}`;
    left -= line.length + 1;
    if (left < 0) {
      // The first is what the message is about.
      if (index === 0) shown.push(`- ${calm(words)}`);
      const more = lines.length - Math.max(index, 1);
      if (more > 0) shown.push(`- and ${more} more`);
      break;
    }
    shown.push(line);
  }
  return [...shown, last].join('\n');
}

/** A chat takes some texts as commands, and a reference may be any text. */
function calm(text: string): string {
  return printable(text)
    .replace(/[<>]/g, ' ')
    .replaceAll('](', '] (')
    .replace(/@(?=everyone|here|channel|all)/gi, '(at) ');
}

/** Plain text of at most 60 columns; only the address of a page may be longer. */
export function mailText({ lines, end }: AlertMessage): string {
  const listed = lines.map(({ words, link }) => [
    wrapped(`- ${printable(words)}`),
    ...(link === null ? [] : [`  ${link}`]),
  ]);
  const last = [wrapped(printable(end.words), ''), ...(end.link === null ? [] : [end.link])];
  return [...listed, last]
    .map((block) => block.join('\n'))
    .join('\n\n')
    .concat('\n');
}

const LONGEST_WORD = new RegExp(`\\S{1,${MAIL_COLUMNS - 2}}`, 'g');

function wrapped(text: string, indent = '  '): string {
  const rows: string[] = [];
  for (const word of text.match(LONGEST_WORD) ?? []) {
    const row = rows.at(-1);
    if (row !== undefined && row.length + 1 + word.length <= MAIL_COLUMNS) rows[rows.length - 1] = `${row} ${word}`;
    else rows.push(row === undefined ? word : indent + word);
  }
  return rows.join('\n');
}

function printable(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, ' ');
}
