import { reportFailure } from '../guard.ts';
import { Refusal } from '../model.ts';
import type { Switches } from '../options.ts';

export type Answer = { status: number; body: unknown; headers?: Record<string, string> };

/** A failure with headers, or with a status that section 7 of the spec does not have. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | null;
  readonly headers: Record<string, string>;
  constructor(
    { status, code, field, headers }: Pick<ApiError, 'status' | 'code'> & Partial<Pick<ApiError, 'field' | 'headers'>>,
    message: string,
  ) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.field = field ?? null;
    this.headers = headers ?? {};
  }
}

/** The answer to a request that failed. Unexpected errors go to stderr, and not to the caller. */
export function errorAnswer(error: unknown, switches: Switches): Answer {
  if (error instanceof ApiError || error instanceof Refusal) {
    const headers = error instanceof ApiError ? error.headers : {};
    return { status: error.status, headers, body: errorBody(error, switches) };
  }
  reportFailure(error);
  const unknown = { code: 'internal_error', message: 'The sandbox failed; its stderr says why.', field: null };
  return { status: 500, body: errorBody(unknown, switches) };
}

/** Section 7 does not show the body of an error, so its shape is a switch. Every shape names the field in its text. */
function errorBody(
  { code, message, field }: Pick<ApiError, 'code' | 'message' | 'field'>,
  switches: Switches,
): object | string {
  switch (switches['error-body']) {
    case 'object':
      return { success: false, error: { code, message, field } };
    case 'error-text':
      return { success: false, error: message };
    case 'message':
      return { success: false, message };
    case 'errors':
      return { success: false, errors: [{ field, message }] };
    case 'detail':
      return { title: code, detail: message };
    case 'empty':
      return '';
    case 'html':
      return `<!doctype html><title>${code}</title><h1>${code}</h1>`;
  }
}
