import { expect } from 'vitest';
import type { TestSandbox } from '../support/sandbox.ts';

/** A creation with every field, and one with no more than it needs. */
export const RICH = {
  title: 'Two chairs',
  amount: 120.5,
  externalReference: 'order-1',
  description: 'Oak, with arms',
  expiresAt: '2099-01-01T03:00:00+03:00',
  metadata: { cart: { items: [1, 2] } },
  webhookUrl: 'http://127.0.0.1:9/hook',
  webhookSecret: 'a secret of the merchant',
  callbackUrl: 'https://shop.example/thanks',
};
export const BARE = { title: 'A table', amount: 26 };

export async function create(sandbox: TestSandbox, body: object) {
  const { status, body: answer } = await sandbox.call('/payment-links', { body });
  expect(status).toBe(201);
  return answer.paymentLink;
}

export async function createLink(sandbox: TestSandbox, over: object = {}) {
  return create(sandbox, { title: 'Order 1', amount: 100, externalReference: 'order-1', ...over });
}

export async function details(sandbox: TestSandbox, id: string) {
  return (await sandbox.call(`/payment-links/${id}`)).body.paymentLink;
}

export async function act(sandbox: TestSandbox, id: string, action: string, body: object = {}) {
  const answer = await sandbox.control(`/links/${id}/${action}`, { body });
  expect(answer).toMatchObject({ status: 200 });
  return answer.body;
}

export async function deliveredKinds(sandbox: TestSandbox, id: string): Promise<string[]> {
  const { deliveries } = (await sandbox.control(`/deliveries?link=${id}`)).body;
  return deliveries.map(({ kind }: { kind: string }) => kind);
}

export async function paymentStatusesTold(sandbox: TestSandbox, id: string): Promise<string[]> {
  const { events } = (await sandbox.control(`/events?link=${id}`)).body;
  const told = events.filter(({ kind }: { kind: string }) => kind === 'payment_link.payment_status_changed');
  return told.map(({ body }: { body: string }) => JSON.parse(body).data.paymentStatus);
}
