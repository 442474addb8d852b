import type { RequestHandler } from 'express';
import { sendPage } from '../../http/html.ts';
import type { OpenApi } from './document.ts';
import { indexPage } from './index_page.ts';
import { documentPage } from './page.ts';
import { STYLE } from './style.ts';

/** `GET /openapi.json`. The document is made when it is first asked for. */
export function showDocument(describe: () => OpenApi): RequestHandler {
  let text: string | null = null;
  return (_request, response) => {
    text ??= JSON.stringify(describe());
    response.type('json').send(text);
  };
}

/** `GET /docs`: the same for people, without script. */
export function showPage(describe: () => OpenApi): RequestHandler {
  let body: ReturnType<typeof documentPage> | null = null;
  return (_request, response) => {
    body ??= documentPage(describe());
    sendPage(response, { title: 'settled: the private API', style: STYLE, body });
  };
}

/** `GET /`: what is at this listener, for somebody who typed its address. */
export function showIndex(): RequestHandler {
  const body = indexPage();
  return (_request, response) => sendPage(response, { title: 'settled', style: STYLE, body });
}
