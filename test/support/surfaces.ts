import { expect } from 'vitest';
import { textOf } from '../console/reading.ts';
import { signIn, type TestSession } from './access.ts';
import { OPERATOR_TOKEN } from './app.ts';

/** Where a settled listens: one of this process, or one of its own. */
export type Listeners = { apiUrl: string; hooksUrl: string };

export type Surfaces = Awaited<ReturnType<typeof surfacesOf>>;

type Check = { name: string; status: string; detail: string };

const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };

// biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
const read = async (url: string): Promise<any> => (await fetch(url, { headers })).json();

/**
 * What each surface says now, side by side. `checks`: the checks of doctor that belong to the trouble. `session`: of a
 * person who signed in before it.
 */
export async function surfacesOf(
  { apiUrl, hooksUrl }: Listeners,
  reference: string,
  checks: readonly string[],
  session?: TestSession,
) {
  const { cookie } = session ?? (await signIn({ apiUrl }));
  const body = (path: string) => read(`${apiUrl}${path}`);
  const page = await (await fetch(`${apiUrl}/`, { headers: { cookie } })).text();
  const doctor = await doctorOf(apiUrl, checks, 'probe=false');
  const [ready, strangers] = await Promise.all([apiUrl, hooksUrl].map((url) => fetch(`${url}/readyz`)));
  const { summary, attention } = await body('/v1/attention');
  const timeline = await body(`/v1/orders/${reference}/timeline`);
  const metrics = await (await fetch(`${apiUrl}/metrics`, { headers })).text();
  return {
    page: textOf(page),
    summary: summary.sentence as string,
    attention: attention.map(({ detail }: { detail: string }) => detail).join('\n') as string,
    doctor,
    readyz: `${ready?.status} ${await ready?.text()}`,
    strangers: `${strangers?.status} ${await strangers?.text()}`,
    why: [timeline.answer, ...timeline.next].join('\n') as string,
    stats: (await body('/v1/stats')).stats.matters.map(({ kind }: { kind: string }) => kind).join() as string,
    metrics: metrics
      .split('\n')
      .filter((line) => /^settled_(ready 0|.* -?[1-9][\d.]*)$/.test(line))
      .join('\n'),
  };
}

/** What doctor finds that is not well, among these checks; `probe=true` sends requests to look. */
export async function doctorOf(apiUrl: string, names: readonly string[], probe = 'probe=true'): Promise<string> {
  const { checks } = await read(`${apiUrl}/v1/admin/doctor?${probe}`);
  return (checks as Check[])
    .filter(({ name, status }) => names.includes(name) && status !== 'ok')
    .map(({ name, status, detail }) => `${status} ${name}: ${detail}`)
    .join('\n');
}

/** What every surface says of a trouble in the same words, although deliveries can be taken; `over` are the columns that differ. */
export const saying = (words: RegExp, metric: string, over: Partial<Record<keyof Surfaces, unknown>> = {}) => ({
  page: expect.stringMatching(words),
  summary: expect.stringMatching(words),
  attention: '',
  doctor: expect.stringMatching(words),
  readyz: expect.stringMatching(new RegExp(`^200 .*"troubles":\\[.*${words.source}`)),
  strangers: '200 {"ready":true}',
  why: expect.stringMatching(words),
  stats: '',
  metrics: expect.stringMatching(new RegExp(`^${metric}$`, 'm')),
  ...over,
});
