import type { Router } from 'express';
import { z } from 'zod';
import type { Context } from '../context.ts';
import { assertPaymentsEnabled, EVENT_KINDS, type Link, PAYMENT_METHODS, PAYMENT_MONEY } from '../model.ts';
import type { PaymentChoice } from '../service.ts';
import { fields, money, oneNamed, oneOf, readShape, text, trueOrFalse, wholeNumber } from '../validate.ts';
import { deliveryView, eventView } from './deliveries.ts';
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

const REFUND = fields({ amount: money().nullable().default(null) });

const pageNumber = (most: number) => z.preprocess(Number, wholeNumber(1, most));
const PAGE = z.object({ page: pageNumber(1_000_000).default(1), pageSize: pageNumber(PAGE_SIZE_MAX).default(100) });

/** Reads and changes links. `:id` is a link's id, its short code or its externalReference. */
export function linkRoutes(router: Router, context: Context): void {
  const { service } = context;
  router.get('/links', (request, response) => {
    const { page, pageSize } = readShape(PAGE, request.query);
    const found = context.store.links({ status: null, externalReference: null, page, pageSize });
    response.json({ links: found.links.map((link) => context.service.details(link)), total: found.total });
  });
  router.get('/links/:id', (request, response) => {
    response.json(context.service.details(linkOf(context, request.params.id)));
  });
  router.post('/links/:id/events', (request, response) => {
    const link = linkOf(context, request.params.id);
    const kind = oneNamed('event kind', objectOf(request).kind, EVENT_KINDS, 'kind');
    const { event, delivery } = service.emit(link, kind, 'panel');
    response
      .status(201)
      .json({ event: eventView(context, event), delivery: delivery === null ? null : deliveryView(context, delivery) });
  });

  const change = (name: string, work: (link: Link, given: Record<string, unknown>) => void) =>
    router.post(`/links/:id/${name}`, (request, response) => {
      const link = linkOf(context, request.params.id as string);
      work(link, objectOf(request));
      response.json(context.service.details(service.link(link.id)));
    });
  change('pay', (link, given) => pay(context, link, given));
  change('complete', (link) => {
    assertPaymentsEnabled(context.options.environment);
    service.completePayment(link);
  });
  change('refund', (link, given) => service.refund(link, readShape(REFUND, given).amount));
  change('dispute', (link) => service.dispute(link));
  change('win', (link) => service.winDispute(link));
  change('expire', (link) => service.expire(link));
  change('disable', (link) => service.setStatus(link, 'INACTIVE'));
  change('enable', (link) => service.setStatus(link, 'ACTIVE'));
}

function pay(context: Context, link: Link, given: Record<string, unknown>): void {
  const { complete, ...choice } = readShape(PAYMENT, given);
  assertPaymentsEnabled(context.options.environment);
  context.service.startPayment(link, choice satisfies PaymentChoice);
  // Starting the payment may have changed the link's amount.
  if (complete) context.service.completePayment(context.service.link(link.id));
}
