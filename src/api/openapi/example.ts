import type { JsonSchema } from './json_schema.ts';
import type { Documented } from './rules.ts';

type Named = { name: string; in: string; schema: JsonSchema };

/** A call of the route in a shell. `$API` and `$AUTH` are set in the introduction. */
export function exampleCall({ method, path, allowed, operation }: Documented, parameters: readonly Named[]): string {
  const { query, body } = operation.example ?? {};
  const place = path.replace(/:(\w+)/g, (_, name: string) => {
    const schema = parameters.find((parameter) => parameter.in === 'path' && parameter.name === name)?.schema;
    return encodeURIComponent(String(schema?.examples?.[0] ?? name));
  });
  const address = `"$API${place}${query === undefined ? '' : `?${query}`}"`;
  const parts = [
    `curl -s${method === 'post' && body === undefined ? ' -X POST' : ''} ${address}`,
    ...(allowed.length === 0 ? [] : ['-H "$AUTH"']),
    ...(body === undefined ? [] : ['-H "Content-Type: application/json"', `-d ${quoted(spaced(body))}`]),
  ];
  return parts.join(' \\\n  ');
}

/** JSON in one line that a narrow page can break between its fields. */
function spaced(body: object): string {
  return JSON.stringify(body, null, 1).replace(/\n */g, ' ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
