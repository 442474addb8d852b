const ANSWER_MS_MAX = 20_000;

// biome-ignore lint/suspicious/noExplicitAny: what a service answers is checked where it is used
export type Answer = { status: number; headers: Headers; body: any };

type Request = {
  token?: string;
  /** Sent as JSON; without a body it is a GET. */
  body?: unknown;
  /** Sent as a browser sends a form. */
  form?: Readonly<Record<string, string>>;
};

/** A program did not answer, or not as it must. */
export class CallFailed extends Error {}

/** One request; its answer is read as JSON where it says so. Every status is an answer, and no redirect is followed. */
export async function call(url: string, { token, body, form }: Request = {}): Promise<Answer> {
  const sent = form === undefined ? jsonBody(body) : { method: 'POST', body: new URLSearchParams(form) };
  try {
    const response = await fetch(url, {
      ...sent,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const text = await response.text();
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
  } catch (error) {
    const { cause, message } = error as Error;
    const why = cause instanceof Error ? cause.message : message;
    throw new CallFailed(`${new URL(url).origin} does not answer: ${why}`);
  }
}

function jsonBody(body: unknown): RequestInit {
  return body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
}
