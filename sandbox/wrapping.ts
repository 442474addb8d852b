import type { Silences } from './silences.ts';

type Fields = Readonly<Record<string, unknown>>;

/** What an event is made of, before it is written. */
export type Parts = { readonly envelope: Fields; readonly payload: Fields; readonly linkId: string };

/**
 * The body of an event, as text, in one of the wrappings that the specification leaves open (section 6: "payload schema
 * not shown"). `write` puts envelope and payload together as the switch `envelope` has it.
 */
export function wrap(
  wrapping: Silences['wrapping'],
  { envelope, payload, linkId }: Parts,
  write: (envelope: Fields, payload: Fields) => Fields,
): string {
  const event = write(envelope, payload);
  switch (wrapping) {
    case 'none':
      return JSON.stringify(event);
    case 'data.object':
      return JSON.stringify({ ...envelope, data: { object: payload } });
    case 'event':
      return JSON.stringify({ event });
    case 'resource':
      return JSON.stringify({ ...envelope, resource: payload });
    case 'list':
      return JSON.stringify([event]);
    case 'data-as-text':
      return JSON.stringify({ ...envelope, data: JSON.stringify(payload) });
    case 'text':
      return JSON.stringify(JSON.stringify(event));
    case 'snake_case':
      return JSON.stringify(renamed(event, snake));
    case 'link-id':
      return JSON.stringify({ ...event, id: linkId });
    case 'two':
      return JSON.stringify([event, event]);
    case 'foreign-words':
      return JSON.stringify(renamed(event, (name) => `campo_${[...name].reverse().join('')}`));
    case 'form':
      return new URLSearchParams({ event: JSON.stringify(event) }).toString();
  }
}

/** The same with other names, at every depth. */
function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((one) => renamed(one, rename));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [rename(name), renamed(inner, rename)]));
}

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}
