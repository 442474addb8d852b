import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { createLink, details, sharedSandbox } from './page-order.ts';

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action 'self'; " +
  "base-uri 'none'; frame-ancestors 'none'";

const production = sharedSandbox('production');
const simulated = sharedSandbox('sandbox');

describe('a request that the page cannot take', () => {
  it.each(['status', 'payment', 'send', 'sign'])('is refused by the panel: %s', async (action) => {
    const sandbox = simulated();
    const link = await createLink(sandbox, { webhookUrl: 'http://127.0.0.1:9/hook' });
    const bodies: [string, number, string][] = [
      ['{"value":{"toString":1}}', 400, '"object" is no'],
      [`{"value":${'['.repeat(2_000)}${']'.repeat(2_000)}}`, 400, '"object" is no'],
      [`{"value":${'['.repeat(32_000)}${']'.repeat(32_000)}}`, 413, 'too large'],
      ['{"value":null}', 400, '"object" is no'],
      ['{}', 400, '"undefined" is no'],
      ['[]', 400, '"undefined" is no'],
      ['null', 400, 'cannot be read'],
    ];
    for (const [body, status, message] of bodies) {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${link.url}/panel/${action}`, { method: 'POST', headers, body });
      expect([body.slice(0, 30), answer.status]).toEqual([body.slice(0, 30), status]);
      expect(answer.headers.get('content-type')).toContain('application/json');
      expect(answer.headers.get('content-security-policy')).toBe(POLICY);
      expect(await answer.json()).toMatchObject({ message: expect.stringContaining(message) });
    }
    expect((await details(sandbox, link)).payments).toEqual([]);
  });

  it.each([
    ['an address that is no text', '/pay/%zz/payments', FORM, 404],
    ['a packed form to no link', '/pay/nosuch/payments', { ...FORM, 'content-encoding': 'gzip' }, 404],
    ['a packed form', '/pay/{id}/payments', { ...FORM, 'content-encoding': 'gzip' }, 400],
    ['a form of another packing', '/pay/{id}/payments', { ...FORM, 'content-encoding': 'x' }, 415],
    ['another address that is no text', '/pay/%zz/complete', FORM, 400],
    ['a form that is too long', '/pay/{id}/payments', FORM, 413],
  ])('is answered by a page: %s', async (name, path, headers: Record<string, string>, status) => {
    const sandbox = production();
    const { id } = await createLink(sandbox);
    const body = name.endsWith('too long') ? `method=PIX&name=${'x'.repeat(5_000)}` : 'method=PIX';
    const answer = await fetch(`${sandbox.url}${path.replace('{id}', id)}`, { method: 'POST', headers, body });
    expect(answer.status).toBe(status);
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    const text = await answer.text();
    expect(text).toContain('No money is real');
    expect(text).not.toMatch(/node_modules|\n +at /);
    expect((await details(sandbox, { id })).payments).toEqual([]);
  });

  it('is a form with a field given twice, or longer than it may be: nothing is cut', async () => {
    const sandbox = production();
    const link = await createLink(sandbox);
    const refused = {
      [`method=PIX&name=${'x'.repeat(199)}${encodeURIComponent('😀')}`]: 'name must be a text of at most 200',
      [`method=PIX&email=${'x'.repeat(201)}`]: 'email must be a text of at most 200',
      [`method=CREDIT_CARD${'&installments=1'.repeat(200)}`]: 'installments must be a whole number',
    };
    for (const [body, problem] of Object.entries(refused)) {
      const answer = await fetch(`${link.url}/payments`, { method: 'POST', headers: FORM, body });
      expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining(problem)]);
    }
    expect((await details(sandbox, link)).payments).toEqual([]);
    const name = `${'x'.repeat(198)}😀`;
    await fetch(`${link.url}/payments`, { method: 'POST', body: new URLSearchParams({ method: 'PIX', name }) });
    expect((await details(sandbox, link)).payments).toMatchObject([{ customer: { name } }]);
  });
});

it('an unexpected failure goes to stderr, and the page shows nothing of it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandbox-page-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const data = join(folder, 'sandbox.db');
  const before = await startTestSandbox({ data });
  const { id } = await createLink(before, { metadata: { a: 1 } });
  await before.stop();
  const db = new Database(data);
  db.prepare("UPDATE link SET metadata = '{broken'").run();
  db.close();
  const sandbox = await startTestSandbox({ data });
  const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  onTestFinished(() => told.mockRestore());
  for (const [path, shape] of [
    ['', 'text/html'],
    ['/state', 'application/json'],
  ] as const) {
    told.mockClear();
    const answer = await fetch(`${sandbox.url}/pay/${id}${path}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([500, `${shape}; charset=utf-8`]);
    expect(answer.headers.get('content-security-policy')).toBe(POLICY);
    const text = await answer.text();
    expect(text).toContain('its stderr says why');
    expect(text).not.toMatch(/JSON|node_modules|\n +at /);
    expect(told.mock.calls.join()).toMatch(/SyntaxError.*\n +at /s);
    expect(told).toHaveBeenCalledTimes(1);
  }
});
