import { describe, expect, it } from 'vitest';
import { ask } from '../support/http.ts';
import { sampleSite } from './sample.ts';

const site = sampleSite();
const gzip = { 'accept-encoding': 'gzip' };
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'";

async function assetsOf(path: string): Promise<string[]> {
  const text = await (await ask(`${site().url}${path}`)).text();
  const linked = [...text.matchAll(/(?:href|src)="([^"]*\/assets\/[^"]*)"/g)].map(([, to = '']) => to);
  return [...linked, (linked[0] as string).replace(/[^/]*$/, 'idiomorph.js')];
}

describe('console: assets', () => {
  it.each(['/', '/ops/pay/'])('of the page at %s are there, of the right type, and kept for a year', async (path) => {
    const addresses = await assetsOf(path);
    expect(addresses).toHaveLength(4);
    const types = { css: 'text/css; charset=utf-8', js: 'text/javascript; charset=utf-8', svg: 'image/svg+xml' };
    for (const address of addresses) {
      expect(address).toMatch(new RegExp(`^${path}assets/[\\w-]{12}/`));
      const { status, headers } = await ask(`${site().url}${address}`);
      const extension = address.split('.').at(-1) as keyof typeof types;
      expect([address, status, headers.get('content-type')]).toEqual([address, 200, types[extension]]);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
  });

  it('of another release are served as they are now, and not kept', async () => {
    const [address = ''] = await assetsOf('/');
    const other = await ask(`${site().url}${address.replace(/assets\/[^/]*/, 'assets/other')}`);
    expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-cache']);
    expect((await ask(`${site().url}${address.replace(/[^/]*$/, '..%2f..%2fpackage.json')}`)).status).toBe(404);
  });

  it.each([
    ['gzip', true],
    ['br, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['identity', false],
    ['notgzip', false],
  ])('and pages are compressed for a client that takes it: %s', async (accepted, isCompressed) => {
    const [, style = ''] = await assetsOf('/');
    for (const path of ['/', style]) {
      const { headers } = await ask(`${site().url}${path}`, { headers: { 'accept-encoding': accepted } });
      expect([path, headers.get('content-encoding')]).toEqual([path, isCompressed ? 'gzip' : null]);
      expect(headers.get('vary')).toContain('accept-encoding');
    }
  });

  it('and the first page come to 40 kB at most', async () => {
    const addresses = ['/', ...(await assetsOf('/'))];
    let bytes = 0;
    for (const address of addresses) {
      const { headers } = await ask(`${site().url}${address}`, { headers: gzip });
      bytes += Number(headers.get('content-length'));
    }
    expect(bytes).toBeGreaterThan(5_000);
    expect(bytes).toBeLessThan(40_000);
  });
});

describe('console: the headers of a page', () => {
  it('let nothing run or load but its own, and keep it from caches and other sites', async () => {
    const { status, headers } = await ask(`${site().url}/`);
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(headers.get('content-security-policy')).toBe(POLICY);
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cache-control')).toBe('no-store');
  });

  it('a page has nothing inline', async () => {
    const text = await (await ask(`${site().url}/`)).text();
    expect(text).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?! type="module" src=)|javascript:|data:/);
  });
});
