import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import type { TestSandbox } from '../support/sandbox.ts';

type Received = { event: { id: string; type: string }; signature: string };

/** A receiver that answers each delivery with the next status, and 200 when there are no more. */
export async function startReceiver(...statuses: number[]): Promise<{ webhookUrl: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (incoming, response) => {
    let text = '';
    for await (const chunk of incoming) text += chunk;
    const signature = incoming.headers['x-service-signature'] as string;
    received.push({ event: JSON.parse(text), signature });
    response.writeHead(statuses.shift() ?? 200).end('noted');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { webhookUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}

export async function createLink(sandbox: TestSandbox, over: object = {}) {
  const body = { title: 'Order 1', amount: 100, externalReference: 'order-1', ...over };
  const answer = await sandbox.call('/payment-links', { body });
  expect(answer.status).toBe(201);
  return answer.body.paymentLink;
}
