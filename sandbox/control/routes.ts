import express, { Router } from 'express';
import type { Context } from '../context.ts';
import { turnMs } from '../duration.ts';
import { KNOWN_FAULTS } from '../fault_plans.ts';
import { refuseOtherSites, SANDBOX_HEADER } from '../guard.ts';
import { Refusal } from '../model.ts';
import { readSwitches, SWITCHES } from '../options.ts';
import { timeText } from '../resources.ts';
import { deliveryRoutes } from './deliveries.ts';
import { linkRoutes } from './links.ts';
import { answerFailure, BODY_BYTES_MAX, objectOf } from './requests.ts';

/** The control API under `/_control`: JSON in and out. */
export function controlRoutes(context: Context): Router {
  const router = Router();
  router.use((_request, response, next) => {
    response.setHeader(SANDBOX_HEADER, '1');
    next();
  });
  router.use(refuseOtherSites(context.options));
  // Of any content type: `curl -d` sends another one.
  router.use(express.json({ limit: BODY_BYTES_MAX, strict: false, type: () => true }));
  stateRoutes(router, context);
  clockRoutes(router, context);
  faultRoutes(router, context);
  linkRoutes(router, context);
  deliveryRoutes(router, context);
  router.use((request) => {
    const message = `There is no ${request.method} ${request.originalUrl}. sandbox/README.md lists what there is.`;
    throw new Refusal(404, 'not_found', message);
  });
  router.use(answerFailure);
  return router;
}

function stateRoutes(router: Router, context: Context): void {
  const { options, store, clock, faults } = context;
  router.get('/', (_request, response) => {
    const count = (table: string) => store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    response.json({
      notice: 'No money here is real.',
      environment: options.environment,
      time: timeText(clock.nowMs()),
      url: context.url,
      silences: context.switches(),
      rateLimit: options.rateLimit,
      timeScale: options.timeScale,
      merchantInactive: options.merchantInactive,
      counts: {
        links: count('link'),
        payments: count('payment'),
        events: count('event'),
        deliveries: count('delivery'),
        attempts: count('attempt'),
        faults: faults.list().length,
      },
    });
  });
  router.get('/silences', (_request, response) => {
    response.json({ silences: context.switches(), known: SWITCHES });
  });
  router.post('/silences', (request, response) => {
    const pairs = Object.entries(objectOf(request)).map(([name, value]) => {
      if (typeof value === 'string') return `${name}=${value}`;
      throw new Refusal(400, 'validation_error', `${name} must be a text.`, name);
    });
    context.setSwitches(readSwitches(pairs, context.switches()));
    response.json({ silences: context.switches() });
  });
  router.post('/idle', async (_request, response) => {
    await context.dispatcher.idle();
    response.json({ idle: true, time: timeText(clock.nowMs()) });
  });
}

function clockRoutes(router: Router, context: Context): void {
  const { clock, advance, switches } = context;
  const state = () => {
    const epochMs = clock.nowMs();
    const { timestamps } = switches();
    return { time: timeText(epochMs), epochMs, aheadMs: epochMs - Date.now(), timestamps };
  };
  router.get('/clock', (_request, response) => {
    response.json(state());
  });
  router.post('/clock', async (request, response) => {
    await advance(turnMs(objectOf(request), clock.nowMs()));
    response.json(state());
  });
}

function faultRoutes(router: Router, { faults, dispatcher }: Context): void {
  router.get('/faults', (_request, response) => {
    response.json({ faults: faults.list(), known: KNOWN_FAULTS });
  });
  router.post('/faults', (request, response) => {
    response.status(201).json(faults.add(objectOf(request)));
  });
  router.delete('/faults', (_request, response) => {
    const removed = faults.list().length;
    faults.clear();
    dispatcher.sendHeldBack();
    response.json({ removed });
  });
  router.delete('/faults/:number', (request, response) => {
    const { number } = request.params;
    if (!faults.remove(Number(number))) {
      const known = faults.list().map((plan) => plan.number);
      const message = `There is no fault plan ${number}; known: ${known.join(', ') || 'none'}.`;
      throw new Refusal(404, 'fault_not_found', message, 'number');
    }
    response.json({ removed: 1 });
  });
}
