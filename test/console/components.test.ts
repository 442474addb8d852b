import { describe, expect, it } from 'vitest';
import {
  actionButton,
  actionForm,
  filterForm,
  pagination,
  problemPanel,
  table,
  tabs,
} from '../../src/console/components.ts';
import { PLACES, page } from '../../src/console/layout.ts';
import { html } from '../../src/http/app.ts';
import { PAYLOADS } from '../sandbox/page-payloads.ts';
import { skeleton } from './reading.ts';
import { ORDERS, samplePage, viewOf } from './sample.ts';

const view = viewOf({ prefix: '/ops/pay' });

describe('console: what a stranger wrote', () => {
  it.each(PAYLOADS)('changes no tag and no attribute, in any place of any component: %j', (payload) => {
    const orders = ORDERS.map((order) => ({
      ...order,
      reference: payload,
      currency: payload,
      amount: payload,
      state: payload,
    }));
    const shape = (typed: string, from: typeof ORDERS) =>
      skeleton(
        samplePage(viewOf({ environment: typed, session: { name: typed, role: 'viewer' } }), { typed, orders: from })
          .markup,
      );
    const plain = ORDERS.map((order) => ({ ...order, reference: 'plain', amount: 'plain', state: 'plain' }));
    expect(shape(payload, orders)).toEqual(shape('plain', plain));
  });
});

describe('console: components', () => {
  it('write every address below the prefix', () => {
    const addresses = [...samplePage(view).markup.matchAll(/ (?:href|action|src)="([^"]*)"/g)].map(([, to = '']) => to);
    expect(addresses.length).toBeGreaterThan(20);
    expect(addresses.filter((to) => !to.startsWith('/ops/pay/') && to !== '#main')).toEqual([]);
  });

  it('a table names its rows, so that a refresh finds them, and says when it is empty', () => {
    const columns = [{ head: 'Order', cell: (row: string) => row }];
    const of = (rows: string[]) =>
      table({ caption: 'Orders', columns, rows, rowId: (row) => row, empty: 'No order is held.' });
    expect(of(['a b']).markup).toContain('<tr id="row-a%20b"><th scope="row">a b</th></tr>');
    expect(of([]).markup).toBe('<div class="empty"><p>No order is held.</p></div>');
  });

  it('a filter keeps what was typed, even a choice that there is not, and offers to clear it', () => {
    const of = (value: string) =>
      filterForm(view, {
        path: '/orders',
        label: 'Filter',
        kept: { q: 'ana' },
        filters: [{ name: 'state', label: 'State', value, options: { held: 'held' } }],
      }).markup;
    expect(of('lost')).toContain('<option value="lost" selected>lost</option>');
    expect(of('held')).toContain('<option value="held" selected>held</option>');
    expect(of('held')).toContain('<input type="hidden" name="q" value="ana">');
    expect(of('held')).toContain('<a href="/ops/pay/orders?q=ana">Clear</a>');
    expect(of('')).not.toContain('Clear');
  });

  it('a problem of a filter is tied to its control', () => {
    const [wrong] = [
      { name: 'amount', label: 'Amount', value: 'x', hint: 'like 48.00', problem: 'x is not an amount' },
    ];
    const { markup } = filterForm(view, { path: '/orders', label: 'Filter', filters: [wrong] });
    expect(markup).toContain('aria-describedby="filter-amount-hint filter-amount-problem" aria-invalid="true"');
  });

  it('pages lead on by cursor with the filter, and back to the first', () => {
    const of = (cursor: string | null, next: string | null) =>
      pagination(view, { path: '/orders', query: { state: 'held' }, cursor, next });
    expect(of(null, null)).toBeNull();
    expect(of(null, 'abc')?.markup).toContain('<a rel="next" href="/ops/pay/orders?state=held&amp;cursor=abc">');
    expect(of('abc', null)?.markup).toContain('<a href="/ops/pay/orders?state=held">First page</a>');
    expect(of('abc', null)?.markup).toContain('End of the list');
  });

  it('an action is a form that leads back, asks for a reason, and stays open with what was typed', () => {
    const action = {
      id: 'x',
      action: '/v1/orders/a/resolve',
      summary: 'Accept',
      preview: 'It becomes paid.',
      button: 'Accept',
    } as const;
    const { markup } = actionForm(view, { ...action, reason: 'required', values: { decision: 'accept' } });
    expect(markup).toContain('<form method="post" action="/ops/pay/v1/orders/a/resolve">');
    expect(markup).toContain(
      '<input type="hidden" name="decision" value="accept"><input type="hidden" name="back" value="/ops/pay/orders?state=held">',
    );
    expect(markup).toMatch(/<textarea [^>]*name="reason"[^>]* required><\/textarea>/);
    expect(markup).not.toContain(' open>');
    const typed = actionForm(view, {
      ...action,
      reason: 'optional',
      typed: '\nfirst line',
      isDanger: true,
      back: '/',
    }).markup;
    expect(typed).toContain(' open><summary>');
    // A browser drops the first line break of a textarea.
    expect(typed).toContain('>\n\nfirst line</textarea>');
    expect(typed).toContain('value="/ops/pay/"');
    expect(actionForm(view, action).markup).not.toContain('textarea');
    expect(actionButton(view, { action: '/v1/orders/a/check', button: 'Check' }).markup).toContain('name="back"');
  });

  it('a problem lists its places if there are several', () => {
    const error = { path: 'limit', detail: 'must be a number' };
    const of = (errors: (typeof error)[]) =>
      problemPanel({ title: 'Wrong', detail: 'limit: must be a number', errors }).markup;
    expect(of([error])).not.toContain('<li>');
    expect(of([error, { ...error, path: 'state' }]).match(/<li>/g)).toHaveLength(2);
  });

  it('tabs mark the one that is shown', () => {
    const { markup } = tabs(view, { label: 'Kinds', pages: { One: '/one', Other: '/other' }, path: '/other' });
    expect(markup.match(/"[^"]*" aria-current="page"/g)).toEqual(['"/ops/pay/other" aria-current="page"']);
  });
});

describe('console: a page', () => {
  it('has the menu with the place it belongs to, the search box, and who is signed in', () => {
    const { markup } = page(view, {
      title: 'Held orders',
      here: '/orders',
      body: html`<h1>Held orders</h1>`,
      search: 'a"b',
    });
    for (const [name, path] of PLACES)
      expect(markup).toContain(`href="/ops/pay${path}"${path === '/orders' ? ' aria-current="page"' : ''}>${name}`);
    expect(markup).toContain('<title>Held orders · settled</title>');
    expect(markup).toContain('name="q" type="search" value="a&quot;b"');
    expect(markup).toContain('<form method="post" action="/ops/pay/sign-out">');
    expect(markup).toContain('<bdi>ana</bdi> <span class="soft">operator</span>');
    expect(markup).toContain('>sandbox</span>');
  });

  it('has nothing of that, and no script, for somebody who is not signed in', () => {
    const { markup } = page(viewOf({ session: null, environment: null }), { title: 'Sign in', here: null, body: 'x' });
    expect(markup).not.toMatch(/<script|<nav|sign-out|name="q"|class="badge/);
  });
});
