import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ApiError } from './errors.ts';

/**
 * Accepts the key in either header (spec section 5). Every header that is present must show the right key: two keys
 * that disagree, or an Authorization that is not Bearer, get 401 even if one of them is right.
 *
 * @returns the key
 */
export function authenticate(request: IncomingMessage, apiKey: string): string {
  const { 'x-api-key': plain = [], authorization = [] } = request.headersDistinct;
  const shown = [...plain, ...authorization.map(bearerKey)];
  if (shown.length === 0) {
    throw unauthorized(
      'missing_api_key',
      'The API key is missing. Send it as x-api-key: KEY, or as Authorization: Bearer KEY.',
    );
  }
  // Compare every key, so that the time does not show which of them is wrong.
  const wrong = shown.filter((key) => !isSame(key, apiKey));
  if (wrong.length > 0) {
    throw unauthorized(
      'invalid_api_key',
      shown.length > 1
        ? 'x-api-key and Authorization are both there, and not both carry the API key.'
        : 'The API key is not the one of this sandbox. It was shown when the sandbox started.',
    );
  }
  return apiKey;
}

function bearerKey(authorization: string): string {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1] ?? '';
}

/** In constant time, for any lengths. */
function isSame(one: string, other: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

function unauthorized(code: string, message: string): ApiError {
  return new ApiError({ status: 401, code, headers: { 'www-authenticate': 'Bearer' } }, message);
}
