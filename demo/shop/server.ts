import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import express, { type ErrorRequestHandler, type RequestHandler, type Response, Router } from 'express';
import { type Settled, SettledRefusal } from '../clients.ts';
import { HOST } from '../ports.ts';
import { type KnownOrder, type Notices, openNotices } from './notices.ts';
import { addressOf, frontPage, messagePage, orderPage, stateOf, type Typed } from './pages.ts';
import { GOODS, newReference, typedAmount } from './texts.ts';

const FORM_BYTES_MAX = 16_384;
const TITLES_MAX = 1_000;
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3})(:\d+)?$/i;
/** The files that each address is made of. The first one has the tokens of every page, settled's too. */
const ASSETS = { 'shop.css': ['../../assets/settled.css', 'assets/shop.css'], 'shop.js': ['assets/shop.js'] } as const;

/** The path at which settled posts its notices. */
export const NOTICES_PATH = '/settled';

type ShopOptions = {
  /** Already listening, at `url`. */
  server: Server;
  url: string;
  settled: Settled;
  /** The secret that signs notices: `whsec_…`. */
  secret: string;
  /** Where customers pay: the shop's forms may lead there. */
  sandboxUrl: string;
  /** Makes a link that signs a browser in to settled's console. */
  consoleLink: () => Promise<string>;
  /** Where the console is. */
  consoleUrl: string;
};

export type Shop = { noticesOf(reference: string): KnownOrder | null; close(): void };

/** A tiny shop that opens its orders at settled, and learns their states from settled's notices. */
export function openShop({ server, ...options }: ShopOptions): Shop {
  const notices = openNotices(options.secret);
  const app = express().disable('x-powered-by').set('etag', false);
  app.use(
    protect([options.sandboxUrl, options.consoleUrl]),
    refuseOthers,
    assets(),
    Router().post(NOTICES_PATH, ...notices.take),
    orders({ ...options, notices }),
    notFound,
    answerError,
  );
  server.on('request', app);
  return {
    noticesOf: notices.of,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** The server of a shop that is opened later. Rejects if the port is taken. */
export function listenAt(port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: HOST }, () => resolve(server));
  });
}

/** Lets nothing run, load or frame but the shop's own. A browser applies `form-action` to a form's redirect too. */
function protect(urls: readonly string[]): RequestHandler {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    'img-src data:',
    "connect-src 'self'",
    `form-action 'self' ${urls.map((url) => new URL(url).origin).join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return (_request, response, next) => {
    response.set({
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
    next();
  };
}

/** A page of another site must not buy here. A browser names the site; programs name none. */
const refuseOthers: RequestHandler = (request, response, next) => {
  const { host = '', origin, 'sec-fetch-site': site } = request.headers;
  const isOwn =
    site === undefined ? origin === undefined || origin === `http://${host}` : /^(same-origin|none)$/.test(site);
  if (LOOPBACK.test(host) && (request.method === 'GET' || request.method === 'HEAD' || isOwn)) return next();
  say(response, 403, { title: 'Refused', text: 'Only the shop’s own pages may do this.' });
};

function assets(): Router {
  const router = Router();
  for (const [name, files] of Object.entries(ASSETS)) {
    const text = files.map((file) => readFileSync(new URL(file, import.meta.url), 'utf8')).join('\n');
    router.get(`/assets/${name}`, (_request, response) => {
      response.type(name).send(text);
    });
  }
  return router;
}

type Selling = Pick<ShopOptions, 'settled' | 'url' | 'consoleLink'> & { notices: Notices };

function orders({ settled, url, notices, consoleLink }: Selling): Router {
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: FORM_BYTES_MAX });
  const titles = new Map<string, string>();
  const front = async (response: Response, problem: string | null, typed?: Typed) => {
    const untouched = { title: '', amount: '', reference: newReference('own') };
    const shown = { orders: await settled.listOrders(), problem, typed: typed ?? untouched };
    response.type('html').send(frontPage(shown));
  };

  router.get('/', (_request, response) => front(response, null));
  router.post('/orders', form, async (request, response) => {
    const bought = readForm(request.body ?? {});
    try {
      const callbackUrl = url + addressOf(bought.reference);
      const order = await settled.openOrder({ ...bought, callbackUrl });
      if (titles.size < TITLES_MAX) titles.set(bought.reference, bought.title);
      // If its page is not known yet, or it was paid before, the order's own page says so.
      const isPayable = order.state === 'awaiting_payment' && order.link?.url != null;
      response.redirect(303, isPayable ? (order.link?.url as string) : addressOf(order.reference));
    } catch (error) {
      if (!(error instanceof SettledRefusal)) throw error;
      response.status(error.status);
      await front(response, `settled refused: ${error.message}`, bought);
    }
  });

  router.post('/console', async (_request, response) => response.redirect(303, await consoleLink()));

  const show = async (response: Response, reference: string, problem: string | null) => {
    const order = await settled.findOrder(reference);
    if (order === null) return noSuchOrder(response, reference);
    const told = notices.of(reference);
    response.type('html').send(orderPage({ order, told, title: titles.get(reference) ?? null, problem }));
  };
  router.get('/orders/:reference', (request, response) => show(response, request.params.reference, null));
  router.get('/orders/:reference/state', async (request, response) => {
    const { reference } = request.params;
    const order = await settled.findOrder(reference);
    const state = order === null ? null : stateOf(order, notices.of(reference));
    response.status(order === null ? 404 : 200).json({ state });
  });
  router.post('/orders/:reference/check', async (request, response) => {
    const { reference } = request.params;
    try {
      await settled.checkOrder(reference);
      response.redirect(303, addressOf(reference));
    } catch (error) {
      if (!(error instanceof SettledRefusal)) throw error;
      response.status(error.status);
      await show(response, reference, `settled refused: ${error.message}`);
    }
  });
  return router;
}

/** One of the goods, or what was typed in. A field that is given twice counts as empty, which settled refuses. */
function readForm(body: Record<string, unknown>): Typed {
  const text = (name: string) => (typeof body[name] === 'string' ? body[name].trim() : '');
  const good = GOODS.find(({ id }) => id === body.good);
  const { title, amount } = good ?? { title: text('title'), amount: typedAmount(text('amount')) };
  return { title, amount, reference: text('reference') };
}

const notFound: RequestHandler = (_request, response) => {
  say(response, 404, { title: 'Not found', text: 'The shop has no such page.' });
};

function noSuchOrder(response: Response, reference: string): void {
  say(response, 404, { title: 'Not found', text: `settled knows no order ${reference}.` });
}

/** Answers with a page; express would show a stack. */
const answerError: ErrorRequestHandler = (error, _request, response, _next) => {
  if (response.headersSent) return void response.destroy();
  const status = typeof error?.status === 'number' && error.status < 500 ? error.status : 502;
  const text = status === 502 ? `settled does not answer: ${error.message}.` : 'The request cannot be read.';
  say(response, status, { title: 'That did not work', text });
};

function say(response: Response, status: number, message: { title: string; text: string }): void {
  response.status(status).type('html').send(messagePage(message));
}
