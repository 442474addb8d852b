import type { Request, Response } from 'express';
import { callerOf } from '../api/guard.ts';
import type { ApiOptions } from '../api/route.ts';
import { hasRole, type PersonRole } from '../domain/access.ts';
import { machineZone } from '../work/zone.ts';

/** What the console needs. */
export type ConsoleOptions = ApiOptions & {
  /** The environment in a word or two; null if none is shown. */
  badge: string | null;
  /** The IANA name of the time zone of pages; null: this machine's. */
  zone: string | null;
  /** How many pages may be followed at once: each holds a connection, and the shop needs the others. */
  streamsMax: number;
};

/** What every page and component is told of the request that it answers. */
export type View = {
  /** The path under which the console is served: empty, or like `/ops/pay`. */
  prefix: string;
  /** The address of the page below the prefix, with its query: what `back` of a form leads to. */
  path: string;
  /** The environment in a word or two, shown beside the name; null shows nothing. */
  environment: string | null;
  /** Who is signed in, and the id of the browser's session; null on pages that need none. */
  session: { name: string; role: PersonRole; id?: string | null } | null;
  /** The time of what the page shows. */
  nowMs: number;
  /** The IANA name of the time zone in which pages write and read times and days. */
  zone: string;
  /** A locale that `Intl` knows, in which amounts are written. The words are English. */
  locale: string;
  /** An action that was not done: the page is shown again with why, and with what was typed. */
  refused?: Refused | null;
  /** The id of a form that the address wants unfolded. */
  open?: string | null;
};

/** `typed`: the fields of the form by their names. */
export type Refused = {
  status: number;
  code: string;
  detail: string;
  action: string;
  typed: ReadonlyMap<string, string>;
};

/** The parameter of a page's address that says what was done: the id of the operation. */
export const DONE = 'done';

/** The parameter of a page's address that names a form to unfold. */
export const OPEN = 'open';

/** What the page that answers a request is told of it. */
export function requestView(
  { access, badge, zone, clock }: ConsoleOptions,
  request: Request,
  response: Response,
): View {
  const caller = callerOf(response);
  return {
    prefix: access.prefix,
    path: lastingPath(request.url),
    environment: badge,
    session:
      caller === null || caller.role === 'shop'
        ? null
        : { name: caller.name, role: caller.role, id: caller.session === null ? null : String(caller.session.key) },
    nowMs: clock.nowMs(),
    zone: zone ?? machineZone(),
    locale: localeOf(request),
    refused: (response.locals.refused as Refused | undefined) ?? null,
    open: typeof request.query[OPEN] === 'string' ? request.query[OPEN] : null,
  };
}

/** What a form leads back to must not say again what was done before, nor unfold a form. */
function lastingPath(url: string): string {
  const [path = '', query] = url.split('?', 2);
  if (query === undefined) return url;
  const kept = query.split('&').filter((part) => ![DONE, OPEN].includes(part.split('=', 1)[0] ?? ''));
  return kept.length === 0 ? path : `${path}?${kept.join('&')}`;
}

/** Whether to show a form to the person who is signed in. The API's own route decides whether it does what the form asks. */
export function mayDo({ session }: Pick<View, 'session'>, least: PersonRole): boolean {
  return session !== null && hasRole(session.role, least);
}

/** Values of a query by their names; null and empty ones are left out. */
export type QueryValues = Readonly<Record<string, string | number | null>>;

/** An address of the console, given its path below the prefix: `/orders` and `{ state: 'held' }` make `/ops/pay/orders?state=held`. */
export function hrefOf({ prefix }: Pick<View, 'prefix'>, path: string, query: QueryValues = {}): string {
  const values = Object.entries(query).filter(([, value]) => value !== null && value !== '');
  const search = new URLSearchParams(values.map(([name, value]): [string, string] => [name, String(value)])).toString();
  return `${prefix}${path}${search === '' ? '' : `?${search}`}`;
}

/** The path and query of a page about an order. */
export function orderPath(reference: string): string {
  return `/orders/${encodeURIComponent(reference.toWellFormed())}`;
}

/** The view's own page with one of its forms unfolded, whether there is a script or not. */
export function formHref(view: Pick<View, 'prefix' | 'path'>, id: string): string {
  const [path = '', query = ''] = view.path.split('?', 2);
  const values = new URLSearchParams(query);
  values.set(OPEN, id);
  return `${view.prefix}${path}?${values}#${id}`;
}

/** An id for an element that is about something with this name, so that a refreshed page finds it again. */
export function idOf(kind: string, name: string | number): string {
  return `${kind}-${encodeURIComponent(String(name).toWellFormed())}`;
}

const LOCALES_READ_MAX = 8;

/** The first locale that a browser asks for and that this Node can write amounts in; English if there is none. */
export function localeOf(request: Pick<Request, 'acceptsLanguages'>): string {
  const asked = request.acceptsLanguages().slice(0, LOCALES_READ_MAX);
  return asked.map(supported).find((locale) => locale !== null) ?? 'en';
}

function supported(tag: string): string | null {
  // Extensions could ask for other digits, or another calendar.
  if (!/^[a-z]{2,3}(-[a-z\d]{2,8})*$/i.test(tag)) return null;
  try {
    return Intl.NumberFormat.supportedLocalesOf([tag])[0] ?? null;
  } catch {
    return null;
  }
}
