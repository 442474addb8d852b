import { createHmac, timingSafeEqual } from 'node:crypto';
import express from 'express';
import getRawBody from 'raw-body';

/**
 * What the receivers of the bench share that are not settled: Express and raw-body, the signature, and the answer once a
 * delivery is recorded. How they record and settle is their own.
 */

export type CompletedEvent = {
  id: string;
  data: {
    paymentStatus: string;
    paymentLink: { amount: number; currency: string; externalReference: string };
    latestPayment: { id: string };
  };
};

type Delivery<Link> = { link: Link; event: CompletedEvent; body: Buffer };
type Receiver<Link> = {
  port: number;
  links: ReadonlyMap<string, Link>;
  /** Makes a delivery durable, and has it settled. Returns whether it is new. */
  record(delivery: Delivery<Link>): boolean | Promise<boolean>;
};

let recorded = 0;
/** When the events that are not settled came, the oldest first. */
const unsettled = new Map<string, number>();

/** Takes the deliveries to these links, by their tokens, and tells at `/stats` how far it has come. */
export function receive<Link extends { secret: string }>({ port, links, record }: Receiver<Link>): void {
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');

  app.post('/hooks/:token', async (request, response) => {
    const link = links.get(request.params.token);
    const body = await getRawBody(request, { limit: '256kb', length: request.headers['content-length'] ?? null });
    const timestamp = String(request.headers['x-service-timestamp']);
    const given = Buffer.from(String(request.headers['x-service-signature']), 'hex');
    const mac = createHmac('sha256', link?.secret ?? '')
      .update(`${timestamp}.`)
      .update(body)
      .digest();
    const isFresh = Math.abs(Date.now() - Number(timestamp)) <= 86_400_000;
    if (link === undefined || given.length !== mac.length || !timingSafeEqual(given, mac) || !isFresh) {
      response.status(401).json({ error: 'unauthorized' });
      return;
    }
    const event = JSON.parse(body.toString()) as CompletedEvent;
    // Before it is recorded, because a worker may settle it before this hears of it.
    unsettled.set(event.id, Date.now());
    const isNew = await record({ link, event, body });
    if (isNew) recorded++;
    else noteSettled(event);
    response.json({ received: true, duplicate: !isNew });
  });

  app.get('/readyz', (_request, response) => {
    response.json({ ready: true });
  });

  app.get('/stats', (_request, response) => {
    const [oldestMs = Date.now()] = unsettled.values();
    response.json({ recorded, unsettled: unsettled.size, lagSeconds: (Date.now() - oldestMs) / 1000 });
  });

  app.listen(port, '127.0.0.1');
  process.once('SIGTERM', () => process.exit(0));
}

/** Says that nothing is left to do for an event. */
export function noteSettled({ id }: CompletedEvent): void {
  unsettled.delete(id);
}
