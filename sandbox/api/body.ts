import type { IncomingMessage } from 'node:http';
import getRawBody from 'raw-body';
import { Refusal } from '../model.ts';

const BODY_BYTES_MAX = 100 * 1024;

/** The body as JSON. Throws the refusal 400 where it is too large, of another type, or no JSON in UTF-8. */
export async function readJson(request: IncomingMessage): Promise<unknown> {
  const { 'content-type': type, 'content-encoding': encoding } = request.headers;
  if (!/^application\/json *(;|$)/i.test(type ?? '')) {
    throw bad(`The content-type must be application/json; it is ${type ?? 'missing'}.`, 'content-type');
  }
  if (encoding !== undefined && encoding !== 'identity') {
    throw bad(`The content-encoding ${encoding} is not read; send the body as it is.`, 'content-encoding');
  }
  const bytes = await readBytes(request);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw bad('The body is not valid UTF-8.', 'body');
  }
  try {
    return JSON.parse(text);
  } catch {
    throw bad('The body is not valid JSON.', 'body');
  }
}

async function readBytes(request: IncomingMessage): Promise<Uint8Array> {
  try {
    return await getRawBody(request, { limit: BODY_BYTES_MAX, length: request.headers['content-length'] ?? null });
  } catch (error) {
    const { type } = error as { type?: string };
    if (type === undefined) throw error;
    throw bad(
      type === 'entity.too.large'
        ? `The body is larger than ${BODY_BYTES_MAX} bytes.`
        : `The body could not be read: ${type}.`,
      'body',
    );
  }
}

function bad(message: string, field: string): Refusal {
  return new Refusal(400, 'validation_error', message, field);
}
