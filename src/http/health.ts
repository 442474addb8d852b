import express, { type RequestHandler, type Router } from 'express';

/** Whether the process should get requests, and the first reason why not. */
export type Readiness = () => { ready: true } | { ready: false; reason: string };

/**
 * Of the public listener. `GET /livez`: the process answers. `GET /readyz`: its store can be written and it is not
 * stopping. Why it is not ready is for the private listener: a reason may name the store.
 */
export function healthRoutes(readiness: Readiness): Router {
  const router = express.Router({ caseSensitive: true, strict: true });
  router.get('/livez', showLive);
  router.get(
    '/readyz',
    showReadiness(() => ({ ready: readiness().ready })),
  );
  return router;
}

export const showLive: RequestHandler = (_request, response) => {
  response.json({ live: true });
};

export function showReadiness(readiness: () => { ready: boolean }): RequestHandler {
  return (_request, response) => {
    const state = readiness();
    response.status(state.ready ? 200 : 503).json(state);
  };
}
