import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type ProxyAuth, proxyPerson } from '../../src/access/proxy.ts';
import { startTestApp } from '../support/app.ts';

const AUTH: ProxyAuth = {
  user: 'x-user',
  groups: 'x-groups',
  secret: { header: 'x-proxy', value: '0123456789abcdef' },
  from: [],
  roles: { viewer: '*', operator: 'support', admin: 'platform' },
};

/** Who a request with these headers is from. */
function person(rawHeaders: readonly string[], more: Partial<ProxyAuth> = {}, remoteAddress = '10.0.0.2') {
  return proxyPerson({ rawHeaders, socket: { remoteAddress } } as unknown as IncomingMessage, { ...AUTH, ...more });
}

const FROM_PROXY = ['X-Proxy', '0123456789abcdef'] as const;

describe('a person whom a proxy signed in', () => {
  it('has the greatest role that a group has', () => {
    expect(person([...FROM_PROXY, 'X-User', 'ana'])).toEqual({ name: 'ana', role: 'viewer' });
    expect(person([...FROM_PROXY, 'X-User', 'ana', 'x-groups', 'shop, support'])?.role).toBe('operator');
    expect(person([...FROM_PROXY, 'X-User', 'ana', 'x-groups', 'platform,support'])?.role).toBe('admin');
    expect(person([...FROM_PROXY, 'X-User', 'ana', 'x-groups', 'nobody'], { roles: { admin: 'platform' } })).toBeNull();
  });

  it.each([
    ['without the secret', ['X-User', 'ana']],
    ['with another secret', ['X-Proxy', '0123456789abcdee', 'X-User', 'ana']],
    ['with the secret twice', [...FROM_PROXY, ...FROM_PROXY, 'X-User', 'ana']],
    ['with two users', [...FROM_PROXY, 'X-User', 'ana', 'x-user', 'root']],
    ['without a user', [...FROM_PROXY]],
    ['with an empty user', [...FROM_PROXY, 'X-User', '']],
    ['with a user that is too long', [...FROM_PROXY, 'X-User', 'a'.repeat(129)]],
    ['with a user of control characters', [...FROM_PROXY, 'X-User', 'a\u0007']],
  ])('is nobody %s', (_name, headers) => {
    expect(person(headers)).toBeNull();
  });

  it('has no role by groups that come twice', () => {
    const twice = [...FROM_PROXY, 'X-User', 'ana', 'X-Groups', 'nobody', 'x-groups', 'platform'];
    expect(person(twice)?.role).toBe('viewer');
  });

  it.each([
    ['10.0.0.2', true],
    ['10.0.1.2', false],
    ['::ffff:10.0.0.9', true],
    ['2001:db8::1', true],
    ['2001:db9::1', false],
    ['', false],
  ])('is known by the address of the proxy: %s', (address, isKnown) => {
    const from = { secret: null, from: ['10.0.0.0/24', '2001:db8::/32'] };
    expect(person(['X-User', 'ana'], from, address) !== null).toBe(isKnown);
  });
});

describe('settled behind a proxy that signs people in', () => {
  it('lets them do what their role may, from its own pages, and forged headers do nothing', async () => {
    const { apiUrl } = await startTestApp({
      environment: {
        SETTLED_PROXY_AUTH: 'user=x-user; secret=x-proxy:0123456789abcdef; groups=x-groups; viewer=*; admin=platform',
      },
    });
    const from = { 'x-proxy': '0123456789abcdef', 'x-user': 'ana' };
    const ask = (headers: Record<string, string>, method = 'GET', path = '/v1/stats') =>
      fetch(`${apiUrl}${path}`, { method, headers, redirect: 'manual' }).then(({ status }) => status);
    expect(await ask(from)).toBe(200);
    expect(await ask({ 'x-user': 'ana' })).toBe(401);
    expect(await ask({ ...from, 'x-proxy': 'forged-0123456789' })).toBe(401);
    const own = { 'sec-fetch-site': 'same-origin' };
    expect(await ask({ ...from, ...own }, 'POST', '/v1/admin/backup')).toBe(403);
    const admin = { ...from, 'x-groups': 'platform' };
    expect(await ask(admin, 'POST', '/v1/admin/backup')).toBe(403);
    expect(await ask({ ...admin, ...own }, 'POST', '/v1/admin/backup')).not.toBe(403);
    expect(await ask(from, 'GET', '/')).toBe(200);
    expect(await ask({}, 'GET', '/')).toBe(303);
  });

  it('tells a person without a role which groups have one, and a stranger nothing', async () => {
    const { apiUrl } = await startTestApp({
      environment: {
        SETTLED_PROXY_AUTH:
          'user=x-user; secret=x-proxy:0123456789abcdef; groups=x-groups; operator=support; admin=platform',
      },
    });
    const from = { 'x-proxy': '0123456789abcdef', 'x-user': 'ana <b>', 'x-groups': 'sales' };
    const answer = await fetch(`${apiUrl}/orders`, { headers: from, redirect: 'manual' });
    expect(answer.status).toBe(403);
    const text = await answer.text();
    expect(text).toContain('You are signed in as ana &lt;b&gt;, and none of your groups may use this console.');
    expect(text).toContain('support (operator), platform (admin)');
    const forged = await fetch(`${apiUrl}/orders`, {
      headers: { ...from, 'x-proxy': 'x'.repeat(16) },
      redirect: 'manual',
    });
    expect(forged.status).toBe(303);
  });
});
