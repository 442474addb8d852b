import { describe, expect, it } from 'vitest';
import { html } from '../../src/http/app.ts';

describe('http: a template of HTML', () => {
  it.each([
    ['a tag', '<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
    ['quotes', `" ' `, '&quot; &#39; '],
    ['an ampersand, once', '&amp; &', '&amp;amp; &amp;'],
    ['a backslash', '\\n', '\\n'],
    ['a dollar', '$& $1', '$&amp; $1'],
  ])('escapes %s', (_name, text, expected) => {
    expect(html`<p title="${text}">${text}</p>`.markup).toBe(`<p title="${expected}">${expected}</p>`);
  });

  it('takes HTML, numbers and lists of them as they are, and null for nothing', () => {
    const items = ['a&b', 2].map((one) => html`<li>${one}</li>`);
    expect(html`<ul class="${null}">${items}${[[html`<hr>`]]}</ul>`.markup).toBe(
      '<ul class=""><li>a&amp;b</li><li>2</li><hr></ul>',
    );
  });
});
