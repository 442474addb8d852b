import type { ProblemCode } from '../../http/problem.ts';
import type { Route, Stated } from '../route.ts';

/** A route as the document has it. One that is open takes nobody's token. */
export type Documented = Omit<Route, 'handle'>;

/** The problems of a route by status: those that it names itself, and those that every route of its kind may answer. */
export function problemsOf(route: Documented): Map<number, ProblemCode[]> {
  const found = new Map<number, ProblemCode[]>();
  for (const [status, code] of [...byRule(route), ...(route.operation.problems ?? [])]) {
    const codes = found.get(status) ?? [];
    if (!codes.includes(code)) found.set(status, [...codes, code]);
  }
  return new Map([...found].sort(([one], [other]) => one - other));
}

function byRule({ method, path, allowed, operation }: Documented): Stated[] {
  if (allowed.length === 0) return [];
  const stated: Stated[] = [
    [401, 'unauthorized'],
    [500, 'internal'],
  ];
  if (!operation.answersWithoutStore) stated.push([503, 'unavailable']);
  if (allowed.length === 1) stated.push([403, 'forbidden']);
  if (path.startsWith('/v1/')) stated.push([400, 'invalid_request']);
  if (path.includes(':')) stated.push([404, 'not_found']);
  if (method === 'post') stated.push([413, 'body_too_large'], [415, 'content_type']);
  return stated;
}
