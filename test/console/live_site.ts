import express from 'express';
import { assetRoutes } from '../../src/console/assets.ts';
import { actionForm, table } from '../../src/console/components.ts';
import { page } from '../../src/console/layout.ts';
import { openLive } from '../../src/console/live.ts';
import { sendConsolePage } from '../../src/console/send.ts';
import { age } from '../../src/console/values.ts';
import { html } from '../../src/http/app.ts';
import { systemClock } from '../../src/work/clock.ts';
import { serve, viewOf } from './sample.ts';

export type LiveSite = Awaited<ReturnType<typeof startLiveSite>>;

/**
 * A console of one page whose rows a test changes. It counts how often it is read, and how often the store is looked at.
 * `haste`: how many times faster than settled it looks and pings.
 */
export async function startLiveSite({ prefix = '', port = 0, haste = 5, signInStatus = 200 } = {}) {
  const state = {
    rows: ['first', 'second'],
    preview: 'It becomes paid.',
    changes: 0,
    isSignedIn: true,
    reads: 0,
    looks: 0,
    /** Streams that are open now. */
    streams: 0,
    isBroken: false,
  };
  const live = openLive({
    onChange: () => {},
    store: {
      changeMark: async () => {
        state.looks++;
        return String(state.changes);
      },
    },
    clock: { ...systemClock, every: (periodMs, work) => systemClock.every(periodMs / haste, work) },
    isStillValid: async () => state.isSignedIn,
    readerOf: () => 'one',
    streamsMax: 3,
  });
  const app = express();
  app.use(prefix, assetRoutes());
  app.get(`${prefix}/live`, (_request, response, next) => {
    state.streams++;
    response.once('close', () => state.streams--);
    next();
  });
  app.get(`${prefix}/live`, live.route);
  app.get(`${prefix}/`, (request, response) => {
    state.reads++;
    if (state.isBroken) return void response.status(503).send('broken');
    const view = viewOf({ prefix, path: '/', nowMs: Date.now() });
    if (!state.isSignedIn) {
      const signIn = page({ ...view, session: null }, { title: 'Sign in', here: null, body: html`<h1>Sign in</h1>` });
      return void sendConsolePage(request, response, signIn, signInStatus);
    }
    const body = html`<h1>Orders</h1><p id="age">${age(view, Date.now() - 60_000)}</p>
${table({
  caption: 'Orders',
  columns: [{ head: 'Order', cell: (row: string) => html`<a href="${prefix}/orders/${row}">${row}</a>` }],
  rows: state.rows,
  rowId: (row) => row,
  empty: 'No order.',
})}
${actionForm(view, { id: 'accept', action: '/v1/accept', summary: 'Accept', preview: state.preview, button: 'Accept it', reason: 'required' })}
<p class="long">${'A long text. '.repeat(2_000)}</p>`;
    return void sendConsolePage(
      request,
      response,
      page(view, { title: `${state.rows.length} orders`, here: '/orders', body }),
    );
  });
  app.get(`${prefix}/orders/:row`, (_request, response) => void response.type('html').send('<title>An order</title>'));
  const site = await serve(app, port);
  return {
    ...site,
    state,
    live,
    change: (rows: string[]) => {
      state.rows = rows;
      state.changes++;
    },
  };
}
