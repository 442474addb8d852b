import { z } from 'zod';
import { showLive, showReadiness } from '../http/app.ts';
import type { OpenApi } from './openapi.ts';
import { answer, type Operation, ok, operation } from './route.ts';

/** What monitors and readers of the document ask for. All but the metrics need no token: a browser has none to send. */

export const livez: Operation = {
  summary: 'Whether the process answers',
  answers: ok('It does.', { live: z.literal(true) }),
  handle: () => showLive,
};

export const readyz: Operation = {
  summary: 'Whether it should get deliveries',
  answers: {
    200: answer('It should.', {
      ready: z.literal(true),
      troubles: z.array(z.string()).optional().describe('What a person should know; absent if there is nothing.'),
    }),
    503: answer('It should not: its store cannot be written, or it is stopping.', {
      ready: z.literal(false),
      reason: z.string(),
    }),
  },
  handle: ({ readiness }) => showReadiness(readiness),
};

export const metrics = operation({
  summary: 'Metrics for Prometheus',
  // Prometheus may add its own parameters.
  query: z.looseObject({}),
  answers: { 200: { when: 'The metrics.', schema: z.string(), type: 'text/plain' } },
  answer: async ({ metrics }, _asked, response) => {
    const { contentType, text } = await metrics.scrape();
    response.setHeader('content-type', contentType);
    response.end(text);
    return undefined;
  },
});

/** `describe` makes the document of every route, this one among them; it is called on the first request. */
export function showDocument(describe: () => OpenApi): Operation {
  let text: string | null = null;
  return {
    summary: 'This document as OpenAPI 3.1',
    answers: { 200: { when: 'The document.', schema: z.looseObject({ openapi: z.string() }) } },
    handle: () => (_request, response) => {
      text ??= JSON.stringify(describe());
      response.type('json').send(text);
    },
  };
}
