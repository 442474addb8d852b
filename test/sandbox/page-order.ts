import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { beforeAll, onTestFinished } from 'vitest';
import { listen } from '../support/network.ts';
import { startTestSandbox, type TestSandbox } from '../support/sandbox.ts';
import { create } from './client.ts';

/** What a page may load and do. */
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'";

/** One sandbox for all tests of a file, each with links of its own. One that turns the clock has its own sandbox. */
export function sharedSandbox(environment: 'production' | 'sandbox'): () => TestSandbox {
  let shared: TestSandbox | undefined;
  beforeAll(async () => {
    let stop = async () => {};
    shared = await startTestSandbox({
      environment,
      rateLimit: null,
      atEnd: (end) => {
        stop = end;
      },
    });
    return stop;
  });
  return () => {
    if (shared === undefined) throw new Error('the sandbox has not been started yet');
    return shared;
  };
}

/** Creates a link through the API; returns it as the answer holds it. */
export async function createLink(sandbox: TestSandbox, more: Record<string, unknown> = {}) {
  return (await create(sandbox, { title: 'Two tickets', amount: 149.9, ...more })) as Record<
    'id' | 'url' | 'shortUrl',
    string
  >;
}

/** The link as the API answers it now. */
export async function details(sandbox: TestSandbox, { id }: { id: string }) {
  return (await sandbox.call(`/payment-links/${id}`)).body.paymentLink;
}

type Site = { url: string; requests: { method: string; url: string; body: string }[] };

/** Another program's server, which records its requests. */
export async function startSite(
  answer: (request: IncomingMessage, response: ServerResponse, body: string) => void,
): Promise<Site> {
  const requests: Site['requests'] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      requests.push({ method: request.method ?? '', url: request.url ?? '', body });
      answer(request, response, body);
    });
  });
  const { url, close } = await listen(server);
  onTestFinished(close);
  return { url, requests };
}

/** A page that says no more than this. */
export function saying(text: string) {
  return (_request: IncomingMessage, response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html><p>${text}</p>`);
  };
}

/** Calls what a button of the panel calls. */
export function panelCall(url: string, action: string, value: string, more: object = {}): Promise<Response> {
  return fetch(`${url}/panel/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ value, ...more }),
  });
}
