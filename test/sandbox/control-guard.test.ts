import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';

/** What `fetch` would not send: the headers of a browser. */
function send(url: string, method: string, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { 'content-length': 2, ...headers } }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode as number));
    });
    sent.on('error', reject).end('{}');
  });
}

describe('control: pages of other sites', () => {
  it.for([
    ['another origin', { origin: 'https://evil.example' }, false],
    ['another port of this machine', { origin: 'http://127.0.0.1:1' }, false],
    ['a page without an origin', { origin: 'null' }, false],
    ['another site by Sec-Fetch-Site', { 'sec-fetch-site': 'cross-site' }, false],
    ['a name that is led to loopback', { host: 'evil.example' }, false],
    ['a name that begins like localhost', { host: 'localhost.evil.com' }, false],
    ['a name that begins like loopback', { host: '127.0.0.1.evil.com' }, false],
    ['a name that begins like loopback, with a port', { host: '127.0.0.1:80.evil.com' }, false],
    ['a name that ends like localhost', { host: 'evil-localhost' }, false],
    ['localhost', { host: 'localhost' }, true],
    ['loopback with a port', { host: '[::1]:8790' }, true],
    ['its own page', { 'sec-fetch-site': 'same-origin' }, true],
    ['a program', {}, true],
  ] as const)('are distinguished: %s', async ([, headers, mayDrive]) => {
    const sandbox = await startTestSandbox();
    await sandbox.control('/faults', { body: { fault: 'drop' } });
    const removed = await send(`${sandbox.url}/_control/faults`, 'DELETE', headers);
    const waited = await send(`${sandbox.url}/_control/idle`, 'POST', headers);
    const left = (await sandbox.control('/faults')).body.faults.length;
    expect({ removed, waited, left }).toEqual(
      mayDrive ? { removed: 200, waited: 200, left: 0 } : { removed: 403, waited: 403, left: 1 },
    );
  });

  it('answers under another host if that was allowed', async () => {
    const sandbox = await startTestSandbox({ allowRemote: true });
    expect(await send(`${sandbox.url}/_control/idle`, 'POST', { host: 'sandbox.test' })).toBe(200);
  });

  it('cannot use the API either, with any key', async () => {
    const sandbox = await startTestSandbox();
    const ask = (host: string) => send(`${sandbox.url}/api/v1/payment-links`, 'GET', { host, 'x-api-key': 'sk_any' });
    expect(await ask('evil.example')).toBe(403);
    expect(await ask('localhost.evil.com:8790')).toBe(403);
    expect(await ask('localhost')).not.toBe(403);
  });
});
