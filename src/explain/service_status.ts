import { OUTAGE_UNPAID_MAX, type Outage } from '../domain/budget.ts';
import type { AttentionParams } from '../domain/matter.ts';
import type { OtherAddress } from '../store/verbs/sweep.ts';
import { inWords } from '../work/clock.ts';
import { inNumber, iso } from './glossary.ts';

/** Whether settled can ask the service, in the same words on every surface. */

/** What the service does instead of answering, by the code of the last fault. */
const INSTEAD: Readonly<Record<string, string>> = {
  service_rate_limited: 'has refused all requests as too many',
  service_answer_unusable: 'has given no answer that settled can use',
  service_answer_too_large: 'has given no answer that settled can use',
  service_not_found: 'has found none of the addresses that settled asked for',
};

/** Since when the service does not answer, and what that means for orders. */
export function outageSentence({ code, sinceMs, unpaid }: Outage): string {
  const many = unpaid > OUTAGE_UNPAID_MAX;
  const orders = many ? `More than ${OUTAGE_UNPAID_MAX} unpaid orders` : inNumber(unpaid, 'unpaid order');
  const may = unpaid === 0 ? 'No link waits for a payment.' : `${orders} may have been paid.`;
  return `The service ${INSTEAD[code] ?? 'has not answered'} since ${iso(sinceMs)}. ${may} settled still takes webhooks.`;
}

export function explainOutage(outage: Outage): string {
  const { requests, message } = outage;
  return (
    `${outageSentence(outage)} ${inNumber(requests, 'request')} in a row failed, the last one so: ${message} settled keeps ` +
    'asking, and this matter ends with the first answer.'
  );
}

export function explainChangedAddress({ reference, address }: AttentionParams['webhook_address_changed']): string {
  return (
    'The service changed the webhook address that settled gave for its links. For the link of order ' +
    `${reference} it says ${address} (settled hides the token). Deliveries to another path or host do not arrive, and settled then learns of ` +
    'payments by asking. To see whether deliveries arrive: settled rejections. Ask the operator of the service why it ' +
    'changes the address. This matter ends with the next link whose address it keeps.'
  );
}

/** An answer may take seconds to arrive, and looks that old. A smaller difference than this says nothing of the clocks. */
const SKEW_MS_TRUSTED = 30_000;

/** That the clocks of the service and of settled differ, as the answers have shown; null if they agree. */
export function clocksDiffer(aheadMs: number | null): string | null {
  if (aheadMs === null || Math.abs(aheadMs) < SKEW_MS_TRUSTED) return null;
  // A header `Date` has whole seconds.
  const apart = inWords(Math.round(Math.abs(aheadMs) / 1000) * 1000);
  const found = `The service's clock is ${apart} ${aheadMs > 0 ? 'ahead of' : 'behind'} ours, so deliveries may look stale`;
  return `${found}: settled then learns of payments by asking. Correct our clock.`;
}

/** Links that the service delivers to another public address than that of now. */
export function linksElsewhere({ address, links, untilMs }: OtherAddress): string {
  return `${inNumber(links, 'open link')} to ${address}${untilMs === null ? '' : ` until ${iso(untilMs)}`}`;
}
