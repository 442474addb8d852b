import type { Request, Response } from 'express';
import { safeBack } from '../access/browser.ts';
import { typedFields } from '../api/body.ts';
import type { FormViews } from '../api/route.ts';
import { html } from '../http/app.ts';

/** How the console answers the forms of its pages. */
export function formViews(prefix: string): FormViews {
  const back = (request: Request) => prefix + safeBack(typedFields(request).get('back'));
  return {
    answered: (request, response) => {
      const to = new URL(back(request), 'http://settled');
      to.searchParams.set('done', String(response.locals.operation));
      response.redirect(303, to.pathname + to.search);
    },
    refused: (request, response: Response, { status, detail }) => {
      const body = html`<p>${detail}</p><p><a href="${back(request)}">Back</a></p>`;
      response.status(status).type('html').send(body.markup);
    },
  };
}
