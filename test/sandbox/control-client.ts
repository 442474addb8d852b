import { expect } from 'vitest';
import type { TestSandbox } from '../support/sandbox.ts';

export async function createLink(sandbox: TestSandbox, over: object = {}) {
  const body = { title: 'Order 1', amount: 100, externalReference: 'order-1', ...over };
  const answer = await sandbox.call('/payment-links', { body });
  expect(answer.status).toBe(201);
  return answer.body.paymentLink;
}
