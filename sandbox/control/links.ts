import type { Router } from 'express';
import { z } from 'zod';
import { EVENT_KINDS, type EventKind, type Link, PAYMENT_METHODS, Refusal } from '../model.ts';
import { linkDetails } from '../resources.ts';
import type { Parts } from '../sandbox.ts';
import type { PaymentChoice } from '../service.ts';
import { UnknownName } from '../silences.ts';
import { deliveryView, eventView } from './answers.ts';
import { linkOf, objectOf } from './requests.ts';

const PAGE_SIZE_MAX = 1_000;

const text = z.string().max(200).nullable().default(null);
const PAYMENT = z.strictObject({
  method: z.enum(PAYMENT_METHODS).default('PIX'),
  installments: z.number().int().default(1),
  customer: z.strictObject({ name: text, email: text }).nullable().default(null),
  complete: z.boolean().default(true),
});

const PAGE = z.object({
  page: z.coerce.number().int().min(1).default(1),
  pageSize: z.coerce.number().int().min(1).max(PAGE_SIZE_MAX).default(100),
});

/** What may be done to a link. `:id` is its id, its short code or its externalReference. */
export function linkRoutes(router: Router, parts: Parts): void {
  const { service } = parts;
  router.get('/links', (request, response) => {
    const { page, pageSize } = read(PAGE, request.query);
    const found = parts.store.links({ status: null, externalReference: null, page, pageSize });
    response.json({ links: found.links.map((link) => details(parts, link)), total: found.total });
  });
  router.get('/links/:id', (request, response) => {
    response.json(details(parts, linkOf(parts, request.params.id)));
  });
  router.post('/links/:id/events', (request, response) => {
    const link = linkOf(parts, request.params.id);
    const { event, delivery } = service.emit(link, kindOf(objectOf(request).kind), 'panel');
    response.status(201).json({
      event: eventView(parts, event),
      delivery: delivery === null ? null : deliveryView(parts, delivery),
    });
  });

  const change = (name: string, work: (link: Link, given: Record<string, unknown>) => void) =>
    router.post(`/links/:id/${name}`, (request, response) => {
      const link = linkOf(parts, request.params.id as string);
      work(link, objectOf(request));
      response.json(details(parts, service.link(link.id)));
    });
  change('pay', (link, given) => pay(parts, link, given));
  change('complete', (link) => {
    assertPaymentsEnabled(parts);
    service.completePayment(link);
  });
  change('refund', (link) => service.refund(link));
  change('dispute', (link) => service.dispute(link));
  change('expire', (link) => service.expire(link));
  change('disable', (link) => service.setStatus(link, 'INACTIVE'));
}

function pay(parts: Parts, link: Link, given: Record<string, unknown>): void {
  const { complete, ...choice } = read(PAYMENT, given);
  assertPaymentsEnabled(parts);
  parts.service.startPayment(link, choice satisfies PaymentChoice);
  if (complete) parts.service.completePayment(link);
}

/** Payments are disabled in the sandbox environment (spec section 1). */
function assertPaymentsEnabled({ options }: Parts): void {
  if (options.environment === 'production') return;
  throw new Refusal(
    403,
    'payments_disabled',
    'Payments are disabled in the environment "sandbox" (section 1 of the specification). Simulate events from the ' +
      "panel on the link's page, or start with --environment production.",
  );
}

function kindOf(given: unknown): EventKind {
  const kind = EVENT_KINDS.find((known) => known === given);
  if (kind !== undefined) return kind;
  const { message } = new UnknownName('event kind', String(given), EVENT_KINDS);
  throw new Refusal(400, 'validation_error', `${message}.`, 'kind');
}

function details(parts: Parts, link: Link) {
  const options = { baseUrl: parts.baseUrl(), silences: parts.silences() };
  return linkDetails(link, parts.service.payments(link), options);
}

function read<S extends z.ZodType>(shape: S, given: unknown): z.output<S> {
  const result = shape.safeParse(given);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const known =
    issue?.code === 'unrecognized_keys' ? '; known: method, installments, customer, complete' : '';
  const field = issue?.path.join('.') || (issue as { keys?: string[] }).keys?.[0] || 'body';
  throw new Refusal(400, 'validation_error', `${field}: ${issue?.message}${known}.`, field);
}
