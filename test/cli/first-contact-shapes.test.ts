import { describe, expect, it } from 'vitest';
import { likeness } from '../../sandbox/cli/switches.ts';
import { DEFAULT_SWITCHES, SWITCHES } from '../../sandbox/options.ts';
import { GAPS, type GapName } from '../../src/contact/gaps.ts';
import { act, startTestSandbox } from '../support/sandbox.ts';
import { eventuallyAfter } from '../support/timing.ts';
import { meet, startBeside, type Told } from './first_contacts.ts';

const eventually = eventuallyAfter('a payment is settled');

/** What settled does not handle, of what the sandbox can play. */
const NOT_HANDLED: Partial<Record<GapName, readonly string[]>> = {
  'creation-secret': ['short'],
  reference: ['changed'],
  'longest-reference': ['changed', 'refused'],
  'oddest-reference': ['changed', 'refused'],
  'webhook-url': ['elsewhere'],
  numbers: ['cents'],
  currency: ['none', 'USD'],
  details: ['no-payments'],
  'error-body': ['empty', 'html'],
  method: ['PUT'],
  'timestamp-unit': ['s'],
  signature: ['signature='],
  signed: ['body'],
  wrapping: ['two', 'foreign-words', 'form'],
};

/** Of these settled opens no link. */
const WITHHELD = ['reference=changed', 'numbers=cents', 'currency=USD', 'webhook-url=elsewhere'];

/** What a first contact cannot tell from another value. */
const SEEN_AS: Readonly<Record<string, Record<string, string>>> = {
  'wrapping=link-id': { wrapping: 'none', 'event-ids': 'link' },
  // None within so many seconds is no shape.
  'deliveries=none': {},
  // There is one payment.
  'payment-ids=first': { 'payment-ids': 'all' },
};

type Shape = Readonly<Record<string, string>>;
const names = (Object.keys(GAPS) as GapName[]).filter((name) => name !== 'header-prefix');
const valuesOf = (name: string): readonly string[] => SWITCHES[name as keyof typeof SWITCHES].values;
const bad = Object.entries(NOT_HANDLED).flatMap(([name, values]) => values.map((value) => ({ [name]: value })));
/** One by one: what hides other gaps, and what no other gap is to be mixed with. */
const alone: Shape[] = [...bad, { deliveries: 'none' }, { 'creation-secret': 'own' }, { reference: 'none' }];

/** Every other value, several gaps at a time. */
const mixed: Shape[] = Array.from({ length: Math.max(...names.map((name) => valuesOf(name).length)) }, (_, at) => {
  const shape = Object.fromEntries(
    names.map((name) => {
      // One delivery in base64url may look like base64: first-contact.test.ts has it.
      const isMixed = (value: string) => value !== 'base64url' && !alone.some((one) => one[name] === value);
      const values = valuesOf(name).filter(isMixed);
      return [name, values[at % values.length] as string];
    }),
  );
  // What has no place of its own there.
  if (/^(data|resource)/.test(shape.wrapping ?? '')) shape.envelope = 'data';
  if (shape['creation-secret'] === 'none') shape['creation-envelope'] = 'in-link';
  if (shape['event-ids'] === 'payment' || shape.wrapping === 'link-id') shape['payment-ids'] = 'all';
  if (shape.wrapping === 'link-id') shape['event-ids'] = 'link';
  return shape;
});

const hasIn = (shape: Shape, pair: string) => shape[pair.split('=')[0] as string] === pair.split('=')[1];
const isBad = (shape: Shape) =>
  Object.entries(shape).some(([name, value]) => NOT_HANDLED[name as GapName]?.includes(value));

/** A sandbox, settled beside it, and a first contact of the two in a shape. */
async function startPair() {
  const sandbox = await startTestSandbox({ rateLimit: 10_000 });
  const { settled, environment } = await startBeside(sandbox);
  return {
    settled,
    async meetAs(shape: Shape): Promise<Told> {
      await sandbox.control('/silences', { body: { ...DEFAULT_SWITCHES, ...shape } });
      const odd = Object.keys(shape).some((name) => name.endsWith('-reference')) ? ['--references'] : [];
      const isPaid = !isBad(shape) && shape.deliveries !== 'none';
      const args = [...odd, ...(isPaid ? ['--payment'] : ['--wait', '2'])];
      const pay = (url: string) => act(sandbox, { id: url.split('/').at(-1) as string }, 'pay');
      return await meet(environment, args, isPaid ? { onLink: pay } : {});
    },
  };
}

describe('cli: first-contact', () => {
  it('has a switch of the sandbox for each gap, with each value that settled reads', () => {
    expect(names.filter((name) => !Object.hasOwn(SWITCHES, name))).toEqual([]);
    // Of these the sandbox has no example.
    const others = {
      'creation-status': ['202'],
      'longest-reference': ['none'],
      'oddest-reference': ['none'],
      'error-body': ['other'],
      'rate-reset': ['other'],
      'webhook-url': ['other'],
      'type-name': ['kind'],
      deliveries: ['early'],
    };
    for (const name of names) {
      const [, expected, handled] = GAPS[name];
      const read = [expected ?? 'BRL', ...handled.split(' ')].filter((value) => value !== '');
      const unknown = read.filter((value) => !valuesOf(name).includes(value));
      const missing = unknown.filter((value) => !(others as Record<string, string[]>)[name]?.includes(value));
      expect([name, missing]).toEqual([name, []]);
    }
  });

  it('names every shape of the service, and says whether settled handles it; a recording plays the same', async () => {
    const copy = await startPair();
    let original = await startPair();
    for (const [at, shape] of [...mixed, ...alone].entries()) {
      // Its budget of requests is enough for so many.
      if (at % 6 === 0) original = await startPair();
      const { settled } = original;
      const told = await original.meetAs(shape);
      const seen = Object.entries(shape).map(([name, value]) => SEEN_AS[`${name}=${value}`] ?? { [name]: value });
      const { code, gaps, text } = told;
      expect({ shape, text, code, ...gaps }).toMatchObject({
        code: isBad(shape) ? 1 : 0,
        ...Object.assign({}, ...seen),
      });
      if (shape.deliveries === 'none') {
        expect(gaps).not.toHaveProperty('deliveries');
        continue;
      }
      const { pairs, unplayed } = likeness(told.file);
      expect(unplayed).toEqual([]);
      const played = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s)));
      expect((await copy.meetAs(played)).table).toBe(told.table);
      const title = 'A chair';
      const opened = await settled.api('/v1/orders', {
        body: { reference: `after-${told.reference}`, title, amount: '30.00' },
      });
      expect([shape, opened.status === 201]).toEqual([shape, !WITHHELD.some((pair) => hasIn(shape, pair))]);
      if (isBad(shape)) continue;
      await eventually(async () => expect(await settled.order(told.reference)).toMatchObject({ state: 'paid' }));
    }
  }, 300_000);
});
