/** The one style sheet of `/docs` and of `/`, which has no menu. */
export const STYLE = `
:root {
  --ink: #1c2024; --soft: #5c6670; --paper: #fdfdfc; --tint: #f3f4f2; --line: #dfe2e0;
  --link: #0b5f8a; --get: #1f6f43; --post: #8a4b08; --bad: #a1282f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e7ea; --soft: #9aa4ad; --paper: #15181b; --tint: #1d2226; --line: #30373d;
    --link: #6bbbe3; --get: #74c897; --post: #e0a45c; --bad: #f08a8f;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
a { color: var(--link); text-decoration: none; }
a:hover, a:focus-visible { text-decoration: underline; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; font-size: .87em; }
code { overflow-wrap: anywhere; }
.whole { white-space: nowrap; }
/* The padding takes no room: a comma follows its name at once. */
p code, li code { background: var(--tint); padding: .08em .2em; margin: 0 -.2em; border-radius: 4px; }
pre {
  margin: .6rem 0 0; padding: .8rem 1rem; background: var(--tint); border: 1px solid var(--line); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; line-height: 1.5;
}
nav { padding: 1.5rem 1.25rem; border-bottom: 1px solid var(--line); }
nav h1 { margin: 0; font-size: 1.25rem; letter-spacing: -.01em; }
nav h2 { margin: 1.1rem 0 .25rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); }
nav ul { list-style: none; margin: 0; padding: 0; }
nav li { display: flex; gap: .5rem; font-size: .875rem; padding: .1rem 0; }
nav li a { color: inherit; min-width: 0; overflow-wrap: anywhere; }
nav details { margin-top: .8rem; }
nav .unfolded { display: none; }
.up {
  position: fixed; right: 1rem; bottom: 1rem; padding: .45rem .8rem; background: var(--paper);
  border: 1px solid var(--line); border-radius: 8px; font-size: .875rem;
}
main { padding: 1.5rem 1.25rem 6rem; max-width: 60rem; }
main > h2 { margin: 3.5rem 0 .25rem; padding-top: 1.25rem; border-top: 1px solid var(--line); font-size: 1.5rem; }
section { margin-top: 2.75rem; }
#rules { margin-top: 0; }
h3 { margin: 0; font-size: 1.05rem; font-weight: 600; }
h3 code { font-size: 1em; }
h4 { margin: 1.4rem 0 .3rem; font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; color: var(--soft); }
p { margin: .5rem 0; }
.lead { color: var(--soft); margin-top: 0; }
.title { margin: .3rem 0 0; font-size: 1.05rem; }
.soft { color: var(--soft); font-size: .875rem; }
.verb { flex: none; font: 600 .72rem/1.6 ui-monospace, Menlo, Consolas, monospace; color: var(--get); }
.verb.post { color: var(--post); }
nav .verb { width: 2.4rem; }
dl { margin: 0; border-top: 1px solid var(--line); }
dl + dl { margin-top: 1.75rem; }
dl dl { margin: .4rem 0 0; border-left: 2px solid var(--line); border-top: 0; padding-left: .9rem; }
.field { padding: .5rem 0; border-bottom: 1px solid var(--line); }
dl dl .field:last-child { border-bottom: 0; }
dt { display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; }
dt code { font-weight: 600; }
dd { margin: .1rem 0 0; font-size: .9375rem; }
dd p { margin: .15rem 0; }
dd ul, section > ul { margin: .3rem 0; padding-left: 1.1rem; }
.type { color: var(--soft); font-size: .875rem; }
.needed { color: var(--bad); font-size: .75rem; font-weight: 600; }
.status { font: 600 .875rem ui-monospace, Menlo, Consolas, monospace; color: var(--get); }
.status.bad { color: var(--bad); }
details { margin-top: 1.2rem; }
pre + details, details + details { margin-top: .6rem; }
summary { cursor: pointer; color: var(--soft); font-size: .875rem; }
@media (min-width: 64rem) {
  body:has(> nav) { display: grid; grid-template-columns: 20rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow-y: auto; border-bottom: 0; border-right: 1px solid var(--line); }
  nav details, .up { display: none; }
  nav .unfolded { display: block; }
  main { padding: 2.5rem 3rem 8rem; }
}
@media print { nav, .up { display: none; } details > * { display: block; } }
`;
