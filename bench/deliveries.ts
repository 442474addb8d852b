import { createHash, createHmac } from 'node:crypto';

/**
 * The links and deliveries of a run. A link follows from its number, so that every process of the bench computes the
 * same ones. Nothing here is shared with `src`.
 */
export type BenchLink = { reference: string; linkId: string; token: string; secret: string };

export const AMOUNT_MINOR = 14_990;
export const CURRENCY = 'BRL';

/** Link number `n`: a token of 24 bytes, a signing secret of 32. */
export function benchLink(n: number): BenchLink {
  const bytes = createHash('sha512').update(`bench link ${n}`).digest();
  return {
    reference: `order-${n}`,
    linkId: `cmf${bytes.toString('hex', 56, 64)}`,
    token: bytes.toString('base64url', 0, 24),
    secret: bytes.toString('base64url', 24, 56),
  };
}

/** The COMPLETED event of a link, as long as a real one with every documented field: about 1 KB. */
export function completedEvent(n: number, { linkId, reference }: BenchLink): string {
  const at = '2026-11-20T12:34:56.789Z';
  return JSON.stringify({
    id: `evt_${linkId}`,
    type: 'payment_link.payment_status_changed',
    createdAt: at,
    data: {
      paymentLink: {
        id: linkId,
        externalReference: reference,
        title: `Order ${n} of the shop`,
        description: 'Three items, shipped to the address of the account',
        amount: 149.9,
        currency: CURRENCY,
        status: 'ACTIVE',
        isMultiUse: false,
        isActive: true,
        isExpired: false,
        expiresAt: '2026-11-23T12:00:00.000Z',
        url: `https://pay.example.com/quote/${linkId}`,
        shortUrl: `https://pay.example.com/s/${linkId.slice(-8)}`,
        metadata: { cart: `cart-${n}`, channel: 'web' },
        callbackUrl: `https://shop.example.com/orders/${reference}/thanks`,
        createdAt: '2026-11-20T12:00:00.000Z',
      },
      paymentStatus: 'COMPLETED',
      latestPayment: {
        id: `pay_${linkId}`,
        status: 'COMPLETED',
        createdAt: '2026-11-20T12:30:00.000Z',
        completedAt: at,
        availableAt: '2026-12-20T12:34:56.789Z',
        customer: { name: 'Maria da Silva', email: 'maria.silva@example.com' },
        quote: { amount: 149.9, currency: CURRENCY, paymentMethod: 'CREDIT_CARD', installments: 1, totalBRL: 149.9 },
      },
      counts: { total: 1, PENDING: 0, COMPLETED: 1, DISPUTED: 0, REFUNDED: 0 },
    },
  });
}

function signature(secret: string, timestamp: string, body: string): string {
  return createHmac('sha256', secret).update(`${timestamp}.${body}`).digest('hex');
}

/** Complete HTTP requests, made before the clock starts. */
export type Requests = { readonly count: number; at(index: number): Buffer };

/** One signed delivery to each of the links `from … from + count - 1`. */
export function signedDeliveries(from: number, count: number): Requests {
  const timestamp = String(Date.now());
  return requests(count, (index) => {
    const n = from + index;
    const link = benchLink(n);
    const body = completedEvent(n, link);
    return post(`/hooks/${link.token}`, body, [
      `x-service-signature: ${signature(link.secret, timestamp, body)}`,
      `x-service-timestamp: ${timestamp}`,
    ]);
  });
}

/**
 * Requests that make a receiver look up a link's credentials, and leave no other trace. They are unsigned, on the
 * shared route, which looks the link up by its id before it finds the signature missing. Each is answered 401.
 */
export function lookUps(from: number, count: number): Requests {
  return requests(count, (index) => {
    return post('/hooks', JSON.stringify({ paymentLinkId: benchLink(from + index).linkId }), []);
  });
}

const SLAB_BYTES = 4 * 1024 * 1024;

function requests(count: number, make: (index: number) => string): Requests {
  const all: Buffer[] = [];
  let slab = Buffer.alloc(0);
  let used = 0;
  for (let index = 0; index < count; index++) {
    const text = make(index);
    if (used + text.length > slab.length) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      used = 0;
    }
    const written = slab.write(text, used, 'latin1');
    all.push(slab.subarray(used, used + written));
    used += written;
  }
  return { count, at: (index) => all[index] as Buffer };
}

function post(path: string, body: string, headers: readonly string[]): string {
  return [
    `POST ${path} HTTP/1.1`,
    'host: pay.shop.example.com',
    'user-agent: payment-links/1.0',
    'accept: */*',
    'content-type: application/json',
    ...headers,
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');
}
