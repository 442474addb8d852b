import { readFileSync } from 'node:fs';
import express, { type ErrorRequestHandler, type Request, type Response, Router } from 'express';
import type { Context } from '../context.ts';
import { refuseOtherSites } from '../guard.ts';
import { aggregateStatus, assertPaymentsEnabled, MERCHANT_NAME, PAYMENT_METHODS, Refusal } from '../model.ts';
import type { PaymentChoice } from '../service.ts';
import { checkoutPage } from './checkout.ts';
import { forBrowser, sendFromServer, simulatePayment, simulateStatus } from './panel_actions.ts';
import { answerError, asRefusal, protect } from './responses.ts';
import { pageState } from './view.ts';

const FORM_BYTES_MAX = 4096;
const TEXT_LENGTH_MAX = 200;

/** The files that each address is made of. The first one has the tokens of every page, settled's too. */
const ASSETS = {
  'page.css': [
    '../../assets/settled.css',
    'assets/base.css',
    'assets/payment.css',
    'assets/outcome.css',
    'assets/panel.css',
    'assets/wide.css',
  ],
  'page.js': ['assets/page.js'],
} as const;

/** The hosted page at a link's `url` and `shortUrl`, and the requests of its forms and its script. */
export function pageRoutes(context: Context): Router {
  const router = Router();
  router.use((_request, response, next) => {
    protect(response);
    next();
  });
  router.use(refuseOtherSites(context.options));
  assetRoutes(router);
  router.get('/s/:short', (request, response) => {
    const link = context.store.findLink({ short: request.params.short });
    if (link === null) throw unknownLink();
    response.redirect(302, `/pay/${link.id}`);
  });
  router.get('/pay/:id', (request, response) => showLink(context, request, response));
  router.get('/pay/:id/state', (request, response) => {
    const { link, payments, payment } = visit(context, request);
    response.json({ state: pageState({ link, payments, payment }) });
  });
  paymentRoutes(router, context);
  panelRoutes(router, context);
  router.use(() => {
    throw new Refusal(404, 'not_found', 'There is no such page. Open a payment link by its url or shortUrl.');
  });
  router.use(showFormAgain(context));
  router.use(answerError(context));
  return router;
}

function assetRoutes(router: Router): void {
  const read = (name: string) => readFileSync(new URL(name, import.meta.url), 'utf8');
  for (const [name, files] of Object.entries(ASSETS)) {
    const text = files.map(read).join('\n');
    router.get(`/assets/${name}`, (_request, response) => {
      response.type(name).set('cache-control', 'no-cache').send(text);
    });
  }
}

/** Every step is a form with its own address, so it works without script and survives a reload. */
function paymentRoutes(router: Router, context: Context): void {
  const form = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  const { service } = context;
  router.post('/pay/:id/payments', form, (request, response) => {
    assertPaymentsEnabled(context.options.environment);
    const { link } = visit(context, request);
    // Paid, expired or disabled in the meantime: its page says so.
    if (link.status !== 'ACTIVE') return response.redirect(303, `/pay/${link.id}`);
    const payment = service.startPayment(link, readChoice(request.body ?? {}));
    response.redirect(303, `/pay/${link.id}?payment=${payment.id}`);
  });
  router.post('/pay/:id/complete', form, (request, response) => {
    assertPaymentsEnabled(context.options.environment);
    const { link, payments } = visit(context, request);
    const id = asText(request.body?.payment);
    const payment = payments.find((payment) => payment.id === id);
    if (payment === undefined) {
      const message = `Link ${link.id} has no payment "${id}".`;
      throw new Refusal(404, 'payment_not_found', message, 'payment');
    }
    const isOpen = link.status === 'ACTIVE' && aggregateStatus(payments) !== 'COMPLETED';
    if (isOpen) service.completePayment(link, payment.id);
    response.redirect(303, `/pay/${link.id}?payment=${payment.id}`);
  });
}

function panelRoutes(router: Router, context: Context): void {
  const panel = Router({ mergeParams: true });
  panel.use((_request, _response, next) => {
    if (context.options.environment === 'sandbox') return next();
    const message = 'The Sandbox panel exists only in the environment "sandbox".';
    throw new Refusal(403, 'no_panel', message);
  });
  panel.use(express.json({ limit: FORM_BYTES_MAX }));
  const change = (name: string, work: typeof simulatePayment) =>
    panel.post(`/${name}`, (request, response) => {
      work(context, visit(context, request).link, request.body?.value, request.body?.money);
      response.json({ atMs: context.clock.nowMs() });
    });
  change('status', simulateStatus);
  change('payment', simulatePayment);
  panel.post('/send', async (request, response) => {
    response.json(await sendFromServer(context, visit(context, request).link, request.body?.value));
  });
  panel.post('/sign', (request, response) => {
    response.json(forBrowser(context, visit(context, request).link, request.body?.value));
  });
  router.use('/pay/:id/panel', panel);
}

function showLink(context: Context, request: Request, response: Response, problem: string | null = null): void {
  const { environment } = context.options;
  const view = visit(context, request);
  protect(response, environment === 'sandbox' ? view.link : null);
  response.type('html').send(checkoutPage({ ...view, environment, merchantName: MERCHANT_NAME, problem }));
}

/** The link of the address, and the payment that the visit is about. */
function visit({ store, service }: Context, request: Request) {
  const link = store.findLink({ id: String(request.params.id) });
  if (link === null) throw unknownLink();
  const payments = service.payments(link);
  const payment = payments.find(({ id }) => id === request.query.payment) ?? null;
  return { link, payments, payment };
}

function unknownLink(): Refusal {
  const message = 'There is no such payment link. Check the address, or ask the seller for a new one.';
  return new Refusal(404, 'link_not_found', message);
}

function readChoice(body: Record<string, unknown>): PaymentChoice {
  const method = PAYMENT_METHODS.find((known) => known === body.method);
  if (method === undefined) {
    const message = `Choose how to pay: method is one of ${PAYMENT_METHODS.join(', ')}.`;
    throw new Refusal(400, 'validation_error', message, 'method');
  }
  const [name, email] = [readText('name', body.name), readText('email', body.email)];
  return {
    method,
    installments: method === 'PIX' ? 1 : Number(asText(body.installments ?? '1')),
    customer: name === null && email === null ? null : { name, email },
  };
}

/** Refuses text that is too long, because cutting it could split a character. */
function readText(field: string, given: unknown): string | null {
  const text = asText(given).trim();
  if (text.length > TEXT_LENGTH_MAX) {
    const message = `${field} must be a text of at most ${TEXT_LENGTH_MAX} characters.`;
    throw new Refusal(400, 'validation_error', message, field);
  }
  return text === '' ? null : text;
}

/** A field that is given twice is not a text, and counts as empty. */
function asText(given: unknown): string {
  return typeof given === 'string' ? given : '';
}

/** Shows a form again with what was wrong in it. If its link is unknown, says that instead. */
function showFormAgain(context: Context): ErrorRequestHandler {
  return (error, request, response, next) => {
    const refusal = asRefusal(error);
    const isForm = request.path.endsWith('/payments') && !request.is('json');
    if (refusal?.status !== 400 || !isForm) return next(error);
    const id = request.path.split('/')[2] as string;
    response.status(400);
    showLink(context, Object.assign(request, { params: { id } }), response, refusal.message);
  };
}
