import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import express, { type RequestHandler } from 'express';

const BODY_BYTES_MAX = 1_048_576;
const TOLERANCE_SECONDS = 300;

/** What the shop knows of an order, from signed notices only. */
export type KnownOrder = {
  state: string;
  version: number;
  /** The types of the notices that said something new, in their order. */
  types: string[];
  /** How many notices came; a resent one says nothing new. */
  count: number;
};

export type Notices = {
  /** Null if no notice came. */
  of(reference: string): KnownOrder | null;
  /** Receives what settled posts. */
  take: RequestHandler[];
};

/** The shop's notices, in memory. A real shop writes them to its disk before it answers, as in `examples`. */
export function openNotices(secret: string): Notices {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const orders = new Map<string, KnownOrder>();
  const readRaw = express.raw({ type: () => true, inflate: false, limit: BODY_BYTES_MAX });
  return {
    of: (reference) => orders.get(reference) ?? null,
    take: [
      readRaw,
      ({ headers, body }, response) => {
        if (!Buffer.isBuffer(body) || !isSigned(key, headers, body)) return void response.sendStatus(401);
        record(orders, JSON.parse(body.toString()));
        response.sendStatus(204);
      },
    ],
  };
}

type Notice = { type: string; data: { order: { reference: string; state: string; version: number } } };

function record(orders: Map<string, KnownOrder>, { type, data }: Notice): void {
  const { reference, state, version } = data.order;
  const known = orders.get(reference) ?? { state: '', version: 0, types: [], count: 0 };
  known.count += 1;
  orders.set(reference, known);
  // A repeated or an older notice.
  if (version <= known.version) return;
  Object.assign(known, { state, version });
  known.types.push(type);
}

/** Whether settled signed it within five minutes of now (Standard Webhooks, version 1). */
function isSigned(key: Buffer, headers: IncomingHttpHeaders, body: Buffer): boolean {
  const [id, timestamp, signatures] = ['id', 'timestamp', 'signature'].map((name) =>
    String(headers[`webhook-${name}`] ?? ''),
  ) as [string, string, string];
  if (!/^[0-9]{1,12}$/.test(timestamp)) return false;
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) return false;
  const digest = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  const expected = Buffer.from(`v1,${digest}`);
  return signatures.split(' ').some((signature) => {
    const given = Buffer.from(signature);
    return given.length === expected.length && timingSafeEqual(given, expected);
  });
}
