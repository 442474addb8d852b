import express, { Router } from 'express';
import { turnMs } from '../duration.ts';
import { KNOWN_FAULTS } from '../fault_plans.ts';
import { refuseOtherSites, SANDBOX_HEADER } from '../guard.ts';
import { Refusal } from '../model.ts';
import { readSilences, SILENCES } from '../options.ts';
import { timeText } from '../resources.ts';
import type { Parts } from '../sandbox.ts';
import { answerFault } from './answers.ts';
import { deliveryRoutes } from './deliveries.ts';
import { linkRoutes } from './links.ts';
import { BODY_BYTES_MAX, objectOf } from './requests.ts';

/** Everything that may be done to the sandbox itself, under `/_control`: JSON in and out. */
export function controlRoutes(parts: Parts): Router {
  const router = Router();
  router.use((_request, response, next) => {
    response.setHeader(SANDBOX_HEADER, '1');
    next();
  });
  router.use(refuseOtherSites(parts.options));
  // Whatever the content type says: `curl -d` names another.
  router.use(express.json({ limit: BODY_BYTES_MAX, strict: false, type: () => true }));
  stateRoutes(router, parts);
  clockRoutes(router, parts);
  faultRoutes(router, parts);
  linkRoutes(router, parts);
  deliveryRoutes(router, parts);
  router.use((request) => {
    const message = `There is no ${request.method} ${request.originalUrl}. sandbox/README.md lists what there is.`;
    throw new Refusal(404, 'not_found', message);
  });
  router.use(answerFault);
  return router;
}

function stateRoutes(router: Router, parts: Parts): void {
  const { options, store, clock, faults } = parts;
  router.get('/', (_request, response) => {
    const count = (table: string) => store.db.prepare(`SELECT count(*) FROM ${table}`).pluck().get() as number;
    response.json({
      notice: 'No money here is real.',
      environment: options.environment,
      time: timeText(clock.nowMs()),
      url: parts.baseUrl(),
      silences: parts.silences(),
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
    response.json({ silences: parts.silences(), known: SILENCES });
  });
  router.post('/silences', (request, response) => {
    const pairs = Object.entries(objectOf(request)).map(([name, value]) => {
      if (typeof value === 'string') return `${name}=${value}`;
      throw new Refusal(400, 'validation_error', `${name} must be a text.`, name);
    });
    parts.setSilences(readSilences(pairs, parts.silences()));
    response.json({ silences: parts.silences() });
  });
  router.post('/idle', async (_request, response) => {
    await parts.idle();
    response.json({ idle: true, time: timeText(clock.nowMs()) });
  });
}

function clockRoutes(router: Router, parts: Parts): void {
  const { clock, advance, silences } = parts;
  const told = () => {
    const epochMs = clock.nowMs();
    const { timestamps } = silences();
    return { time: timeText(epochMs), epochMs, aheadMs: epochMs - Date.now(), timestamps };
  };
  router.get('/clock', (_request, response) => {
    response.json(told());
  });
  router.post('/clock', async (request, response) => {
    await advance(turnMs(objectOf(request), clock.nowMs()));
    response.json(told());
  });
}

function faultRoutes(router: Router, { faults, letGo }: Parts): void {
  router.get('/faults', (_request, response) => {
    response.json({ faults: faults.list(), known: KNOWN_FAULTS });
  });
  router.post('/faults', (request, response) => {
    response.status(201).json(faults.add(objectOf(request)));
  });
  router.delete('/faults', (_request, response) => {
    const removed = faults.list().length;
    faults.clear();
    letGo();
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
