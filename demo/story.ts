import { setTimeout as wait } from 'node:timers/promises';
import type { Attempt, Delivery, Order } from './clients.ts';
import { CallFailed, call } from './clients.ts';
import { DemoError, EXIT } from './command.ts';
import type { Demo } from './demo.ts';

const SETTLES_MS_MAX = 5_000;
/** settled answers an opening within 10 s, with its link or without. */
const OPENS_MS_MAX = 15_000;
const LOOK_EVERY_MS = 20;

const STATUS_CHANGED = 'payment_link.payment_status_changed';

/** A step of the story that went as it should. */
export type Step = { step: string; happened: string; state: string; seconds: number };

type Act = [step: string, act: () => Promise<{ happened: string; order: Order }>];

/**
 * Plays what happens between a shop, settled and the service, and checks each step. Throws a `DemoError` at the first
 * step that goes wrong.
 *
 * @param onStep called after each step
 */
export async function playStory(demo: Demo, onStep: (step: Step) => void): Promise<void> {
  const acts = [...paidOnce(demo, 'story-1'), ...tamperedWith(demo, 'story-2'), ...neverTold(demo, 'story-3')];
  for (const [step, act] of acts) {
    const startMs = performance.now();
    const { happened, order } = await act().catch((error: unknown) => {
      throw asDemoError(step, error);
    });
    onStep({ step, happened, state: order.state, seconds: (performance.now() - startMs) / 1000 });
  }
}

function paidOnce(demo: Demo, reference: string): Act[] {
  const { sandbox } = demo;
  return [
    [
      'open an order in the shop',
      async () => {
        const page = await buy(demo, reference);
        const order = await openedOrder(demo, reference);
        expect(order.link?.url === page, `the shop led to ${page}, not to the page of the order's link`);
        return { happened: 'its button leads to the page of a payment link', order };
      },
    ],
    [
      'pay it',
      async () => {
        const link = await linkOf(demo, reference);
        await sandbox.pay(link);
        const order = await settles(demo, reference, 'paid');
        expect(order.learnedBy === 'webhook', `the payment was learned by ${order.learnedBy}`);
        const [count] = await answers(demo, link, (attempt) => attempt.status === 200);
        await shopIsTold(demo, reference);
        return { happened: `${count} webhooks answered 200; a signed notice told the shop`, order };
      },
    ],
    [
      'deliver the payment twice more',
      async () => {
        const link = await linkOf(demo, reference);
        const before = await settles(demo, reference, 'paid');
        const { id } = await completion(demo, link);
        await sandbox.resend(id);
        await sandbox.resend(id);
        const [count] = await answers(demo, link, isDuplicate);
        expect(count === 2, `${count} of 2 copies were answered as duplicates`);
        const order = await settles(demo, reference, 'paid');
        expect(order.payments.length === 1, `${order.payments.length} payments are counted`);
        expect(order.paidAt === before.paidAt, 'the order became paid a second time');
        await shopIsTold(demo, reference);
        return { happened: 'both answered 200 "duplicate"; paid once, told once', order };
      },
    ],
  ];
}

function tamperedWith(demo: Demo, reference: string): Act[] {
  const { settled, sandbox } = demo;
  return [
    [
      'tamper: PENDING becomes COMPLETED',
      async () => {
        const link = await openLink(demo, reference);
        const match = { link, event: STATUS_CHANGED };
        await sandbox.plan({ fault: 'tamper', match, with: { what: 'status' }, count: 1 });
        await sandbox.pay(link, false);
        const [count] = await answers(demo, link, ({ status, faults }) => faults.includes('tamper') && status === 401);
        expect(count === 1, `${count} of 1 forged deliveries was answered 401`);
        const rejections = await until(
          () => settled.asOperator.listRejections(reference),
          (list) => list.length > 0,
        );
        const [rejection] = rejections ?? [];
        expect(rejection !== undefined, 'the forged delivery is not among the rejections');
        const order = await openOrderNow(demo, reference);
        return { happened: `answered 401; among the rejections: ${rejection?.reason}`, order };
      },
    ],
    [
      'complete it, untampered',
      async () => {
        const link = await linkOf(demo, reference);
        await sandbox.complete(link);
        const order = await settles(demo, reference, 'paid');
        expect(order.payments.length === 1, `${order.payments.length} payments are counted`);
        const { faults } = await genuine(demo, link);
        expect(faults.length === 0, `the genuine delivery suffered ${faults}`);
        return { happened: `the genuine delivery got 200; learned by ${order.learnedBy}`, order };
      },
    ],
  ];
}

function neverTold(demo: Demo, reference: string): Act[] {
  const { settled, sandbox } = demo;
  return [
    [
      'lose every webhook of a payment',
      async () => {
        const link = await openLink(demo, reference);
        await sandbox.plan({ fault: 'drop', match: { link }, with: { forGood: true }, count: null });
        await sandbox.pay(link);
        const [count] = await answers(demo, link, ({ status, faults }) => faults.includes('drop') && status === null);
        expect(count > 0, 'no webhook was lost');
        const order = await orderOf(demo, reference);
        expect(order.state === 'awaiting_payment', `the order is ${order.state}: it knows of the payment`);
        return { happened: `${count} lost for good; settled cannot know`, order };
      },
    ],
    [
      'ask: POST /v1/orders/…/check',
      async () => {
        const order = await settled.asShop.checkOrder(reference);
        expect(order.state === 'paid', `the answer says ${order.state}`);
        expect(order.learnedBy === 'reconciliation', `the payment was learned by ${order.learnedBy}`);
        await shopIsTold(demo, reference);
        return { happened: 'learned by reconciliation; a signed notice told the shop', order };
      },
    ],
  ];
}

/** Presses a button of the shop. Returns the address to which it leads. */
async function buy({ addresses }: Demo, reference: string): Promise<string> {
  const { status, headers } = await call(`${addresses.shop}/orders`, { form: { good: 'lamp', reference } });
  expect(status === 303, `the shop answered ${status}`);
  return headers.get('location') ?? 'nowhere';
}

/** Opens an order with settled's API. Returns its link's id. */
async function openLink(demo: Demo, reference: string): Promise<string> {
  await demo.settled.asShop.openOrder({ reference, title: `Order ${reference}`, amount: '100.00' });
  return (await openedOrder(demo, reference)).link?.id as string;
}

async function openedOrder(demo: Demo, reference: string): Promise<Order> {
  const hasLink = (order: Order) => order.link?.id != null && order.link.url !== null;
  const order = await until(() => orderOf(demo, reference), hasLink, OPENS_MS_MAX);
  expect(order !== null, 'the order has no link yet');
  return order as Order;
}

async function linkOf(demo: Demo, reference: string): Promise<string> {
  return (await orderOf(demo, reference)).link?.id as string;
}

async function orderOf({ settled }: Demo, reference: string): Promise<Order> {
  const order = await settled.asShop.findOrder(reference);
  expect(order !== null, `settled knows no order ${reference}`);
  return order as Order;
}

/** Waits until the order is in this state. */
async function settles(demo: Demo, reference: string, state: string): Promise<Order> {
  await demo.sandbox.idle();
  const order = await until(
    () => orderOf(demo, reference),
    (seen) => seen.state === state,
  );
  if (order !== null) return order;
  throw new StepFailed(`the order is ${(await orderOf(demo, reference)).state}, not ${state}`);
}

/** Waits until a notice has told the shop that the order is paid, and checks that every notice said something new. */
async function shopIsTold({ noticesOf }: Demo, reference: string): Promise<void> {
  const paid = await until(
    async () => noticesOf(reference),
    (seen) => seen?.state === 'paid',
  );
  expect(paid !== null, 'no signed notice told the shop that the order is paid');
  const types = paid?.types ?? [];
  expect(paid?.count === types.length, `the shop got ${paid?.count} notices about ${types.length} new things`);
  expect(types.filter((type) => type === 'order.paid').length === 1, `the shop got ${types}`);
}

/** The unpaid order. settled may know of a payment that was begun, because a rejection makes it ask the service. */
async function openOrderNow(demo: Demo, reference: string): Promise<Order> {
  const order = await orderOf(demo, reference);
  const isOpen = ['awaiting_payment', 'payment_pending'].includes(order.state);
  expect(isOpen, `a forged delivery made the order ${order.state}`);
  return order;
}

/** Counts the requests about a link that were answered like this, once all are sent. */
async function answers(demo: Demo, link: string, like: (attempt: Attempt) => boolean): Promise<[number]> {
  await demo.sandbox.idle();
  return [(await demo.sandbox.attempts(link)).filter(like).length];
}

function isDuplicate({ status, body }: Attempt): boolean {
  return status === 200 && body !== null && JSON.parse(body).duplicate === true;
}

async function completion({ sandbox }: Demo, link: string): Promise<Delivery> {
  const delivery = (await sandbox.deliveries(link)).find(
    ({ kind, paymentStatus }) => kind === STATUS_CHANGED && paymentStatus === 'COMPLETED',
  );
  if (delivery === undefined) throw new StepFailed('the service reported no completed payment');
  return delivery;
}

/** The request that reported the completed payment and was accepted. */
async function genuine(demo: Demo, link: string): Promise<Attempt> {
  await completion(demo, link);
  const accepted = (await demo.sandbox.attempts(link)).filter(({ status }) => status === 200).at(-1);
  if (accepted === undefined) throw new StepFailed('no delivery was answered 200');
  return accepted;
}

/** Looks until the result is as wanted; null if that takes too long. */
async function until<T>(
  look: () => Promise<T>,
  isWanted: (found: T) => boolean,
  msMax = SETTLES_MS_MAX,
): Promise<T | null> {
  const untilMs = performance.now() + msMax;
  for (;;) {
    const found = await look();
    if (isWanted(found)) return found;
    if (performance.now() > untilMs) return null;
    await wait(LOOK_EVERY_MS);
  }
}

/** A step went wrong. */
class StepFailed extends Error {}

function expect(isTrue: boolean, otherwise: string): void {
  if (!isTrue) throw new StepFailed(otherwise);
}

function asDemoError(step: string, error: unknown): unknown {
  if (!(error instanceof StepFailed || error instanceof CallFailed)) return error;
  return new DemoError(EXIT.failed, `The step "${step}" failed: ${error.message}.`.replace(/\.\.$/, '.'));
}
