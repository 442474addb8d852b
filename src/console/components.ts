import { type Html, type HtmlValue, html } from '../http/app.ts';
import { hrefOf, idOf, type QueryValues, type View } from './view.ts';

/** Building blocks of pages. Each escapes its values. */

export type Column<Row> = {
  head: string;
  cell: (row: Row) => HtmlValue;
  /** Aligns the cells at the end, with digits of one width. */
  isNumber?: true;
  /** Makes the column wide enough for sentences. */
  isText?: true;
};

/**
 * A table that scrolls sideways on narrow screens. The first column names the row. `rowId` is unique in the page, so that
 * a refreshed page finds the row again. `empty` stands in place of a table that may have no rows.
 */
export function table<Row>(options: {
  /** For screen readers. */
  caption: string;
  showsCaption?: true;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowId: (row: Row) => string;
  empty?: string | Html;
}): Html {
  const { caption, showsCaption, columns, rows, rowId, empty = '' } = options;
  if (rows.length === 0) return typeof empty === 'string' ? emptyState(empty) : empty;
  const [first, ...others] = columns as [Column<Row>, ...Column<Row>[]];
  return html`<div class="table" role="region" aria-label="${caption}" tabindex="0"><table>
<caption${showsCaption === true ? null : html` class="unseen"`}>${caption}</caption>
<thead><tr>${columns.map(({ head, isNumber }) => html`<th scope="col"${numeric(isNumber)}>${head}</th>`)}</tr></thead>
<tbody>${rows.map(
    (
      row,
    ) => html`<tr id="${idOf('row', rowId(row))}"><th scope="row"${numeric(first.isNumber)}>${first.cell(row)}</th>${others.map(
      ({ head, cell, isNumber, isText }) =>
        html`<td data-head="${head}"${numeric(isNumber)}${isText === true ? html` class="wide"` : null}>${cell(row)}</td>`,
    )}</tr>
`,
  )}</tbody>
</table></div>`;
}

function numeric(isNumber: true | undefined): Html | null {
  return isNumber === true ? html` class="number"` : null;
}

/** A link to a page of the console, given its path below the prefix. */
export function link(view: Pick<View, 'prefix'>, path: string, text: string, query: QueryValues = {}): Html {
  return html`<a href="${hrefOf(view, path, query)}">${text}</a>`;
}

/** Names and their values; a null value is left out with its name. */
export function definitions(pairs: readonly (readonly [string, HtmlValue])[]): Html {
  const shown = pairs.filter(([, value]) => value !== null);
  return html`<dl class="facts">${shown.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/** Says that there is nothing to show, and optionally why or what to do. */
export function emptyState(text: string, hint: HtmlValue = null): Html {
  return html`<div class="empty"><p>${text}</p>${hint === null ? null : html`<p class="hint">${hint}</p>`}</div>`;
}

/** What went wrong and what to do. `errors`: the fields of a form that must be corrected. */
export function problemPanel(problem: {
  title: string;
  detail: HtmlValue;
  errors?: readonly { path: string; detail: string }[];
  remedy?: HtmlValue;
}): Html {
  const { title, detail, errors = [], remedy = null } = problem;
  return html`<div class="problem" role="alert"><h2>${title}</h2><p>${detail}</p>
${errors.length < 2 ? null : html`<ul>${errors.map((error) => html`<li><code>${error.path}</code> ${error.detail}</li>`)}</ul>`}
${remedy === null ? null : html`<p>${remedy}</p>`}</div>`;
}

type Tabs = {
  label: string;
  /** Paths by their names. */
  pages: Readonly<Record<string, string>>;
  /** That of the page that is shown. */
  path: string;
  counts?: Readonly<Record<string, string>>;
};

export function tabs(view: View, { label, pages, path, counts = {} }: Tabs): Html {
  return html`<nav class="tabs" aria-label="${label}"><ul>${Object.entries(pages).map(
    ([text, to]) =>
      html`<li><a href="${hrefOf(view, to)}"${to === path ? html` aria-current="page"` : null}>${text}${
        counts[text] === undefined ? null : html` <span class="soft">${counts[text]}</span>`
      }</a></li>`,
  )}</ul></nav>`;
}

/** Links through a list that is read by cursor. `cursor`: that of this page, null on the first. Null if there is one page. */
export function pagination(
  view: View,
  { path, query, cursor, next }: { path: string; query: QueryValues; cursor: string | null; next: string | null },
): Html | null {
  if (cursor === null && next === null) return null;
  return html`<nav class="pages" aria-label="Pages">${
    cursor === null ? null : html`<a href="${hrefOf(view, path, query)}">First page</a>`
  }${next === null ? html`<span class="soft">End of the list</span>` : html`<a rel="next" href="${hrefOf(view, path, { ...query, cursor: next })}">Next page</a>`}</nav>`;
}

/** One control of a filter. An empty value means any. */
export type Filter = {
  name: string;
  label: string;
  value: string;
  /** Choices by value, in addition to "any". Without them, the filter is a text field. */
  options?: Readonly<Record<string, string>>;
  type?: 'text' | 'search' | 'date';
  hint?: string;
  /** What is wrong with the value. */
  problem?: string | null;
};

/**
 * A filter form. It sends a query, so the page's address contains the filter. `kept`: values of the query that it does not
 * change. `more`: filters that are folded away until one of them is set.
 */
export function filterForm(
  view: View,
  {
    path,
    label,
    filters,
    more = [],
    kept = {},
  }: { path: string; label: string; filters: readonly Filter[]; more?: readonly Filter[]; kept?: QueryValues },
): Html {
  const isUsed = ({ value, problem = null }: Filter) => value !== '' || problem !== null;
  const isSet = [...filters, ...more].some(isUsed);
  return html`<form class="filter" role="search" method="get" action="${hrefOf(view, path)}" aria-label="${label}">
${hiddenFields(kept)}
${filters.map(filterField)}
<div class="actions"><button class="button">Filter</button>
${isSet ? html`<a href="${hrefOf(view, path, kept)}">Clear</a>` : null}</div>${
    more.length === 0
      ? null
      : html`
<details class="more" id="more-filters"${more.some(isUsed) ? html` open` : null}><summary>More filters</summary>
<div class="filter">${more.map(filterField)}</div></details>`
  }</form>`;
}

function filterField(filter: Filter): Html {
  const { name, label, hint = null, problem = null } = filter;
  const id = idOf('filter', name);
  return html`<div class="field"><label for="${id}">${label}</label>
${control(filter, id)}
${hint === null ? null : html`<p class="hint" id="${id}-hint">${hint}</p>`}
${problem === null ? null : html`<p class="wrong" id="${id}-problem">${problem}</p>`}</div>`;
}

function control(filter: Filter, id: string): Html {
  const { name, value, options, type = 'text', hint = null, problem = null } = filter;
  const about = [...(hint === null ? [] : [`${id}-hint`]), ...(problem === null ? [] : [`${id}-problem`])];
  const described = html`${about.length === 0 ? null : html` aria-describedby="${about.join(' ')}"`}${
    problem === null ? null : html` aria-invalid="true"`
  }`;
  if (options === undefined) {
    return html`<input class="input" id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="off"${described}>`;
  }
  // Keeps an unknown value from the address, so that the page can say what is wrong with it.
  const given = value === '' || Object.hasOwn(options, value) ? {} : { [value]: value };
  const choices = Object.entries({ '': 'any', ...options, ...given });
  return html`<select class="input" id="${id}" name="${name}"${described}>${choices.map(
    ([one, text]) => html`<option value="${one}"${one === value ? html` selected` : null}>${text}</option>`,
  )}</select>`;
}

/**
 * A form for one action of the API, folded under `summary`. It begins with what the action will do. Afterwards it leads to
 * `back`, by default the view's own page.
 */
export function actionForm(
  view: View,
  options: {
    /** Unique in the page: it keeps the form open, and what is typed, when the page is refreshed. */
    id: string;
    /** The address of the API's route, like `/v1/orders/a-1/resolve`. */
    action: string;
    summary: string;
    /** The name for screen readers, which do not see what the form is next to. */
    label?: string;
    /** What will happen if the button is pressed. */
    preview: HtmlValue;
    /** A warning to read first. */
    warning?: string | null;
    button: string;
    /** Whether the action is hard to undo. */
    isDanger?: true;
    /** Whether the form is open at first, for a page that shows only this form. */
    isOpen?: true;
    /** Whether it asks for a reason. */
    reason?: 'required' | 'optional';
    /** The initial text of the reason. By default, what was typed before if the API refused the form. */
    typed?: string;
    values?: QueryValues;
    back?: string;
  },
): Html {
  const { id, action, summary, preview, button, isDanger, reason } = options;
  const { warning = null, values = {}, back = view.path } = options;
  const refused = refusedHere(view, action, values);
  const { typed = refused?.get('reason') ?? '' } = options;
  const isOpen = options.isOpen === true || view.open === id || refused !== null || typed !== '';
  return html`<details class="action" id="${id}"${isOpen ? html` open` : null}><summary${options.label === undefined ? null : html` aria-label="${options.label}"`}>${summary}</summary>
<form method="post" action="${hrefOf(view, action)}">
${hiddenFields({ ...values, back: hrefOf(view, back) })}
<div class="preview">${preview}</div>
${warning === null ? null : html`<p class="problem">${warning}</p>`}
${reason === undefined ? null : reasonField(id, { isNeeded: reason === 'required', typed })}
<button class="button${isDanger === true ? ' danger' : ''}">${button}</button>
</form></details>`;
}

/** The fields as typed, if the API refused this form; otherwise null. */
function refusedHere(
  { refused = null }: View,
  action: string,
  values: QueryValues,
): ReadonlyMap<string, string> | null {
  if (refused === null || refused.action !== action) return null;
  const isOther = Object.entries(values).some(
    ([name, value]) => value !== null && refused.typed.get(name) !== `${value}`,
  );
  return isOther ? null : refused.typed;
}

const REASON_LENGTH_MAX = 500;

function reasonField(form: string, { isNeeded, typed }: { isNeeded: boolean; typed: string }): Html {
  const id = `${form}-reason`;
  return html`<div class="field"><label for="${id}">Reason${isNeeded ? null : html` <span class="soft">optional</span>`}</label>
<textarea class="input" id="${id}" name="reason" rows="2" maxlength="${REASON_LENGTH_MAX}"${
    isNeeded ? html` required` : null
  }>${
    typed === ''
      ? null
      : html`
${typed}`
  }</textarea></div>`;
}

/** A button that acts at once, for actions that can be repeated without harm. Afterwards it leads to the view's own page. */
export function actionButton(view: View, { action, button }: { action: string; button: string }): Html {
  return html`<form class="inline" method="post" action="${hrefOf(view, action)}">${hiddenFields({ back: hrefOf(view, view.path) })}<button class="button quiet small">${button}</button></form>`;
}

function hiddenFields(values: QueryValues): Html {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  return html`${given.map(([name, value]) => html`<input type="hidden" name="${name}" value="${String(value)}">`)}`;
}
