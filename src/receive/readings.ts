/** What the parts of a delivery may have been when they were signed, if not what they are now. */

/** `name`: of the change; empty for what was given. */
export type Reading<T> = { name: string; value: T };

/** Nobody signs a longer form of a body: so many times its own length, and what little bodies need beside. */
const LONGER_MAX = { times: 4, bytes: 1024 } as const;
/** JSON that is nested deeper is no event, and is not written anew. */
const DEPTH_MAX = 32;

function longest(length: number): number {
  return length * LONGER_MAX.times + LONGER_MAX.bytes;
}

/** The body as programs on its way, or that signed it, may have had it. */
export function bodyReadings(body: Buffer): Reading<Buffer>[] {
  const text = body.toString('utf8');
  const readings: [string, string | Buffer][] = [
    ['', body],
    ['body_without_final_line_end', text.replace(/\r?\n$/, '')],
    ['body_trimmed', text.trim()],
    ['body_with_final_line_end', `${text}\n`],
    ['body_with_final_crlf', `${text}\r\n`],
    ['body_lf_for_crlf', text.replaceAll('\r\n', '\n')],
    ['body_crlf_for_lf', text.replace(/\r?\n/g, '\r\n')],
    ['body_without_bom', text.replace(/^\uFEFF/, '')],
    ['body_with_bom', `\uFEFF${text}`],
    ['body_before_double_encoding', Buffer.from(text, 'latin1')],
    ['body_double_encoded', body.toString('latin1')],
    ['body_empty', ''],
    ...jsonReadings(text),
  ];
  const lengthMax = longest(body.length);
  return distinct(
    readings
      .map(([name, value]) => ({ name, value: typeof value === 'string' ? Buffer.from(value) : value }))
      .filter(({ value }) => value.length <= lengthMax),
  );
}

/** The same JSON as programs that parsed it would write it again. */
function jsonReadings(text: string): [string, string][] {
  const { depth, indentedLength } = layoutOf(text);
  if (depth > DEPTH_MAX) return [];
  try {
    const value: unknown = JSON.parse(text);
    const indented = ([2, 4] as const).filter((width) => indentedLength(width) <= longest(text.length));
    return [
      ['body_without_white_space', withWhiteSpace(text, ',', ':')],
      ['body_compact_json', JSON.stringify(value)],
      ...indented.map(
        (width) => [`body_json_indented_${width}`, JSON.stringify(value, null, width)] as [string, string],
      ),
      ['body_python_json', withWhiteSpace(text, ', ', ': ')],
      ['body_python_json', escaped(withWhiteSpace(text, ', ', ': '))],
      ['body_ascii_json', escaped(text)],
    ];
  } catch {
    return [];
  }
}

/**
 * How deep a JSON text is nested, and about how many characters it has when it is written with so many spaces for each
 * level: few brackets, each in another, make megabytes of them.
 */
function layoutOf(text: string): { depth: number; indentedLength: (width: number) => number } {
  let [depth, level, levels, lines] = [0, 0, 0, 0];
  let isText = false;
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (c === '"') isText = !isText;
    else if (isText && c === '\\') at++;
    else if (!isText && (c === '[' || c === '{' || c === ']' || c === '}' || c === ',')) {
      level = Math.max(0, level + (c === ',' ? 0 : c === '[' || c === '{' ? 1 : -1));
      depth = Math.max(depth, level);
      levels += level;
      lines++;
    }
  }
  return { depth, indentedLength: (width) => text.length + lines + levels * width };
}

/** JSON text with other white space, its strings and numbers as they are. */
function withWhiteSpace(text: string, comma: string, colon: string): string {
  return text.replace(/"(?:[^"\\]|\\.)*"|\s+|[,:]/gs, (piece) => {
    if (piece === ',') return comma;
    if (piece === ':') return colon;
    return piece.startsWith('"') ? piece : '';
  });
}

function escaped(text: string): string {
  return text.replace(/[\u0080-\uFFFF]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** A timestamp in the other usual units and forms. */
export function timestampReadings(timestamp: string): Reading<string>[] {
  const readings = [{ name: '', value: timestamp }];
  if (!/^[0-9]{10,19}$/.test(timestamp)) return readings;
  const ms = Number(timestamp.padEnd(13, '0').slice(0, 13));
  const seconds = Math.floor(ms / 1000);
  const others = [
    { name: 'timestamp_seconds', value: String(seconds) },
    { name: 'timestamp_milliseconds', value: String(ms) },
    { name: 'timestamp_cut_to_seconds', value: `${seconds}000` },
    { name: 'timestamp_fraction', value: String(ms / 1000) },
    { name: 'timestamp_iso', value: new Date(ms).toISOString() },
  ];
  return [...readings, ...others.filter(({ value }) => value !== timestamp)];
}

/** A secret as it may have been kept, pasted or decoded. */
export function secretReadings(secret: string): Reading<Buffer>[] {
  const bare = secret.trim().replace(/^whsec_/, '');
  const readings: [string, string | Buffer][] = [
    ['', secret],
    ['secret_trimmed', secret.trim()],
    ['secret_with_line_end', `${secret}\n`],
    ['secret_unquoted', secret.trim().replace(/^(["'])(.*)\1$/s, '$2')],
    ['secret_without_whsec', bare],
    ['secret_with_whsec', `whsec_${secret}`],
    ['secret_from_base64', Buffer.from(bare, 'base64')],
    ...(/^(?:[0-9A-Fa-f]{2})+$/.test(bare) ? [['secret_from_hex', Buffer.from(bare, 'hex')] as [string, Buffer]] : []),
    ['secret_as_base64', Buffer.from(secret).toString('base64')],
    ['secret_as_hex', Buffer.from(secret).toString('hex')],
    ['secret_lower_case', secret.toLowerCase()],
    ['secret_upper_case', secret.toUpperCase()],
    ['secret_latin1', Buffer.from(secret, 'latin1')],
    ['secret_empty', ''],
  ];
  return distinct(
    readings.map(([name, value]) => ({ name, value: typeof value === 'string' ? Buffer.from(value) : value })),
  );
}

export function distinct(readings: readonly Reading<Buffer>[]): Reading<Buffer>[] {
  return readings.filter(
    ({ value }, index) => !readings.slice(0, index).some((earlier) => earlier.value.equals(value)),
  );
}
