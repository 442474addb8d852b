import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { startTestSandbox } from '../support/sandbox.ts';
import { times } from '../support/timing.ts';

const LINKS = '/payment-links';
const FIELDS = [
  'title',
  'amount',
  'externalReference',
  'description',
  'expiresAt',
  'metadata',
  'webhookUrl',
  'webhookSecret',
  'callbackUrl',
];

describe('creation', () => {
  it('of anything is 201, or 400 with the field at fault, or 409; never a 500', async () => {
    const sandbox = await startTestSandbox({ rateLimit: null, environment: 'sandbox' });
    const anything = fc.oneof(fc.jsonValue(), fc.string(), fc.double());
    const right: Record<string, fc.Arbitrary<unknown>> = {
      title: fc.string({ minLength: 1 }).map((text) => `A ${text}`),
      amount: fc.integer({ min: 2_501, max: 10_000_000 }).map((cents) => cents / 100),
      externalReference: fc.constantFrom('order-1', 'order-2', 'order-3'),
      expiresAt: fc.date({ min: new Date('2090-01-01'), noInvalidDate: true, max: new Date('2099-12-31') }),
      metadata: fc.dictionary(fc.string(), fc.jsonValue()),
      webhookUrl: fc.webUrl(),
      callbackUrl: fc.webUrl(),
    };
    const mostlyRight = Object.fromEntries(
      FIELDS.map((field) => {
        const usual = right[field] ?? fc.string({ minLength: 1 });
        return [field, fc.oneof({ weight: 20, arbitrary: usual }, { weight: 1, arbitrary: anything })];
      }),
    );
    const body = fc.oneof(
      { weight: 1, arbitrary: fc.jsonValue() },
      { weight: 9, arbitrary: fc.record(mostlyRight, { requiredKeys: ['title', 'amount'] }) },
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(body, async (given) => {
        const sent = JSON.stringify(given);
        const answer = await sandbox.call(LINKS, { method: 'POST', body: sent });
        seen.add(answer.status);
        if (answer.status === 201) {
          const link = answer.body.paymentLink;
          const { title, amount, metadata } = JSON.parse(sent);
          expect([link.title, link.amount]).toEqual([title, amount]);
          expect(link.metadata).toEqual(metadata ?? null);
          return;
        }
        expect([400, 409]).toContain(answer.status);
        const { field, message } = answer.body.error;
        expect([...FIELDS, 'body']).toContain(field);
        expect(message).toContain(field);
      }),
      { numRuns: times(80, 400) },
    );
    expect([...seen].sort()).toEqual([201, 400, 409]);
  });

  it('takes an amount as it is written: a number over 25 with at most two decimals', async () => {
    const sandbox = await startTestSandbox({ rateLimit: null });
    const digits = fc.string({ unit: fc.constantFrom(...'0123456789'), minLength: 1, maxLength: 4 });
    const whole = fc.oneof(fc.constantFrom('24', '25', '26', '0'), fc.nat({ max: 99_999_999 }).map(String));
    const exponent = fc.constantFrom('', '', '', 'e1', 'E2', 'e-1', 'e+3');
    const text = fc
      .tuple(fc.constantFrom('', '', '', '-'), whole, fc.option(digits), exponent)
      .map(([sign, before, after, power]) => `${sign}${before}${after === null ? '' : `.${after}`}${power}`);
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(text, async (amount) => {
        const body = `{"title":"A","amount":${amount}}`;
        const answer = await sandbox.call(LINKS, { method: 'POST', body });
        seen.add(answer.status);
        const expected = isTaken(amount) ? [201, Number(amount)] : [400, undefined];
        expect([answer.status, answer.body.paymentLink?.amount]).toEqual(expected);
      }),
      { numRuns: times(80, 400) },
    );
    expect([...seen].sort()).toEqual([201, 400]);
  });
});

/** Computed in hundred-millionths and whole numbers, so without rounding. */
function isTaken(amount: string): boolean {
  const [, sign = '', before = '', after = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(amount) ?? [];
  const scaled = BigInt(`${before}${after}`) * 10n ** BigInt(8 + Number(power) - after.length);
  const cent = 10n ** 6n;
  return sign === '' && scaled > 2_500n * cent && scaled % cent === 0n;
}

describe('the rate limit', () => {
  it('never accepts more than 60 in any 60 s, and refuses nothing else', async () => {
    const step = fc.record({
      advanceMs: fc.oneof(fc.constantFrom(0, 1, 999, 1_000, 30_000, 59_999, 60_000, 60_001), fc.nat({ max: 90_000 })),
      requests: fc.oneof(fc.nat({ max: 10 }), fc.nat({ max: 70 })),
    });
    let refusals = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 10 }), async (steps) => {
        // The clock stands still unless it is turned.
        const sandbox = await startTestSandbox({ timeScale: 1e-9 });
        const acceptedMs: number[] = [];
        for (const { advanceMs, requests } of steps) {
          await sandbox.clock.advance(advanceMs);
          const nowMs = sandbox.clock.nowMs();
          for (let request = 0; request < requests; request++) {
            const { status, headers } = await sandbox.call('/merchant/profile');
            expect(headers.get('x-ratelimit-limit')).toBe('60');
            const lastMinute = acceptedMs.filter((atMs) => nowMs - atMs < 60_000);
            if (status === 200) {
              expect(lastMinute.length).toBeLessThan(60);
              acceptedMs.push(nowMs);
              expect(headers.get('x-ratelimit-remaining')).toBe(String(59 - lastMinute.length));
            } else {
              refusals++;
              expect([status, lastMinute.length]).toEqual([429, 60]);
              const freeInMs = (lastMinute[0] as number) + 60_000 - nowMs;
              expect(headers.get('retry-after')).toBe(String(Math.ceil(freeInMs / 1_000)));
            }
          }
        }
      }),
      // Few runs may all stay below the limit: one goes above it, and again after a minute.
      {
        numRuns: times(8, 25),
        examples: [
          [
            [
              { advanceMs: 0, requests: 62 },
              { advanceMs: 60_000, requests: 61 },
            ],
          ],
        ],
      },
    );
    expect(refusals).toBeGreaterThan(0);
  });
});
