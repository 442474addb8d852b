/** Attempts to tell the shop that failed in a row, over all notices: none was taken between them. */
export type ShopFailures = ShopRefusal & { attempts: number; sinceMs: number; lastAtMs: number };

/** What came of an attempt that failed; `answer` is null if there was none. */
export type ShopRefusal = { fault: { code: string; message: string }; answer: { status: number; body: string } | null };

/** A person is told after this many attempts in a row, or this long after the first of them. */
export const REFUSES_AFTER = { attempts: 3, ageMs: 120_000 } as const;

/** Whether the shop refuses notices, and did not only stumble once. */
export function refusesNotices(failures: ShopFailures, nowMs: number): boolean {
  const { attempts, sinceMs } = failures;
  return attempts >= REFUSES_AFTER.attempts || nowMs - sinceMs >= REFUSES_AFTER.ageMs;
}

/** Of a shop's answer, in one line. */
const ANSWER_SHOWN = 120;

/** What came of an attempt, in one line that ends without a full stop: the shop's own words, or why there are none. */
export function lastAttempt({ fault, answer }: ShopRefusal): string {
  if (answer === null) return `the last attempt: ${fault.message.replace(/\.$/, '')}`;
  const said = answer.body.replace(/\s+/g, ' ').trim().slice(0, ANSWER_SHOWN);
  return `its last answer: ${answer.status}${said === '' ? '' : ` ${said.replace(/\.$/, '')}`}`;
}

/** What a person does about a shop that refuses notices. */
export function refusalAdvice({ fault, answer }: ShopRefusal): string {
  // settled does not retry a notice that was answered 410.
  const status = fault.code === 'shop_gone' ? 'dead' : 'pending';
  const isSecret = answer?.status === 401 || answer?.status === 403;
  return [
    ...(isSecret ? ['Does the shop have the secret of SETTLED_SHOP_SECRET?'] : []),
    ...(answer === null || isSecret ? [] : ["Look at the shop's own log."]),
    `See what it answered: settled notices list --status ${status}. This ends with the first notice that the shop takes. When ` +
      'the shop is well, send them again at once: settled notices resend --failed --yes',
  ].join(' ');
}

/** How many attempts failed, and since when. */
export function inARow({ attempts, sinceMs }: Pick<ShopFailures, 'attempts' | 'sinceMs'>): string {
  const since = new Date(sinceMs).toISOString();
  return attempts === 1 ? `1 attempt failed, at ${since}` : `${attempts} attempts in a row failed since ${since}`;
}

/** The sentence of the matter `shop_refuses_notices`. */
export function refusalSentence(failures: ShopFailures): string {
  return (
    `The shop takes no notices: ${inARow(failures)}, and none was taken since; ${lastAttempt(failures)}. ` +
    refusalAdvice(failures)
  );
}

/** The sentence of the matter `notices_dead`, for the notice that died last. */
export function deadSentence(id: string, { message }: ShopRefusal['fault']): string {
  return (
    `The shop did not take notice ${id}: ${message} See all: settled notices list --status dead. Send ` +
    'them again when the shop is well: settled notices resend --failed --yes (with --dry-run it only lists them)'
  );
}
