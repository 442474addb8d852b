import type { Router } from 'express';
import { z } from 'zod';
import { assertPaymentsEnabled, EVENT_KINDS, type Link, PAYMENT_METHODS, PAYMENT_MONEY } from '../model.ts';
import { detailsNow } from '../resources.ts';
import type { Parts } from '../sandbox.ts';
import type { PaymentChoice } from '../service.ts';
import { fields, oneNamed, oneOf, readShape, text, trueOrFalse, wholeNumber } from '../validate.ts';
import { deliveryView, eventView } from './answers.ts';
import { linkOf, objectOf } from './requests.ts';

const PAGE_SIZE_MAX = 1_000;

const words = text(200).nullable().default(null);
const PAYMENT = fields({
  method: oneOf(PAYMENT_METHODS).default('PIX'),
  installments: wholeNumber().default(1),
  customer: fields({ name: words, email: words }).nullable().default(null),
  money: oneOf(PAYMENT_MONEY).default('asked'),
  complete: trueOrFalse().default(true),
});

const pageNumber = (most: number) => z.preprocess(Number, wholeNumber(1, most));
const PAGE = z.object({ page: pageNumber(1_000_000).default(1), pageSize: pageNumber(PAGE_SIZE_MAX).default(100) });

/** What may be done to a link. `:id` is its id, its short code or its externalReference. */
export function linkRoutes(router: Router, parts: Parts): void {
  const { service } = parts;
  router.get('/links', (request, response) => {
    const { page, pageSize } = readShape(PAGE, request.query);
    const found = parts.store.links({ status: null, externalReference: null, page, pageSize });
    response.json({ links: found.links.map((link) => detailsNow(link, parts)), total: found.total });
  });
  router.get('/links/:id', (request, response) => {
    response.json(detailsNow(linkOf(parts, request.params.id), parts));
  });
  router.post('/links/:id/events', (request, response) => {
    const link = linkOf(parts, request.params.id);
    const kind = oneNamed('event kind', objectOf(request).kind, EVENT_KINDS, 'kind');
    const { event, delivery } = service.emit(link, kind, 'panel');
    response
      .status(201)
      .json({ event: eventView(parts, event), delivery: delivery === null ? null : deliveryView(parts, delivery) });
  });

  const change = (name: string, work: (link: Link, given: Record<string, unknown>) => void) =>
    router.post(`/links/:id/${name}`, (request, response) => {
      const link = linkOf(parts, request.params.id as string);
      work(link, objectOf(request));
      response.json(detailsNow(service.link(link.id), parts));
    });
  change('pay', (link, given) => pay(parts, link, given));
  change('complete', (link) => {
    assertPaymentsEnabled(parts.options.environment);
    service.completePayment(link);
  });
  change('refund', (link) => service.refund(link));
  change('dispute', (link) => service.dispute(link));
  change('win', (link) => service.winDispute(link));
  change('expire', (link) => service.expire(link));
  change('disable', (link) => service.setStatus(link, 'INACTIVE'));
  change('enable', (link) => service.setStatus(link, 'ACTIVE'));
}

function pay(parts: Parts, link: Link, given: Record<string, unknown>): void {
  const { complete, ...choice } = readShape(PAYMENT, given);
  assertPaymentsEnabled(parts.options.environment);
  parts.service.startPayment(link, choice satisfies PaymentChoice);
  // Starting it may change what the link says of itself.
  if (complete) parts.service.completePayment(parts.service.link(link.id));
}
