import type { Request, Response } from 'express';
import type { HeaderNames } from '../paylink/events.ts';

const PREFLIGHT_SECONDS = 600;

/** Lets pages of the one allowed origin read an answer (Fetch standard, "CORS protocol"). */
export function crossOriginHeaders(allowed: string, request: Request, response: Response): void {
  response.setHeader('vary', 'origin');
  if (request.headers.origin === allowed) response.setHeader('access-control-allow-origin', allowed);
}

/** Answers a browser's question whether it may deliver from the one allowed origin. */
export function preflight(allowed: string, headerNames: HeaderNames, request: Request, response: Response): void {
  crossOriginHeaders(allowed, request, response);
  response.setHeader('access-control-allow-methods', 'POST');
  response.setHeader(
    'access-control-allow-headers',
    `content-type, ${headerNames.signature}, ${headerNames.timestamp}`,
  );
  response.setHeader('access-control-max-age', String(PREFLIGHT_SECONDS));
  response.writeHead(204).end();
}
