import { describe, expect, it } from 'vitest';
import type { MatterGroup, MatterKind, MatterMoney } from '../../src/domain/matter.ts';
import { summarizeAttention } from '../../src/explain/attention_summary.ts';

const NOW_MS = 10 * 60_000;
const NO_MONEY: MatterMoney = {
  orders: 0,
  withBalance: 0,
  sums: [],
  isWhole: true,
  hasMisread: false,
  hasUnreadable: false,
};

function groupOf(kind: string, minutes: number, count = 1): MatterGroup {
  return { kind: kind as MatterKind, reason: null, count, oldestAtMs: NOW_MS - minutes * 60_000, sums: [] };
}

function say(groups: MatterGroup[], money: Partial<MatterMoney> = {}): string {
  return summarizeAttention(
    { groups, money: { ...NO_MONEY, withBalance: money.orders ?? 0, ...money } },
    { nowMs: NOW_MS, isFiltered: false, unlisted: [] },
  );
}

const sum = (currency: string, balance: bigint) => ({ currency, asked: 10_000n, balance, reported: 0n });

describe('the sentence of what needs a person', () => {
  it('counts all matters, and says for how long the oldest of them has waited', () => {
    const said = say([groupOf('hold', 2, 3), groupOf('link_disabled', 9), groupOf('link_missing', 4)]);
    expect(said).toContain('5 matters need attention; the oldest has waited 9 min.');
  });

  it('says the balance in each currency, nothing of those in which nothing is left, and what is left out', () => {
    const sums = [sum('BRL', 1n), sum('EUR', 0n), sum('USD', -250n)];
    expect(say([groupOf('hold', 1, 2)], { orders: 2, sums })).toMatch(
      / Money: 2 orders with a balance of 0\.01 BRL and -2\.50 USD\.$/,
    );
    expect(say([groupOf('hold', 1)], { orders: 1, sums: [sum('EUR', 0n)] })).toMatch(
      / Money: 1 order of 100\.00 EUR, with no balance\.$/,
    );
    expect(
      say([groupOf('hold', 3, 8)], { orders: 8, withBalance: 3, sums: [sum('BRL', 1n), sum('R$', 100n)] }),
    ).toMatch(/ Money: 8 orders, 3 of them with a balance of 0\.01 BRL and 1\.00 "R\$"\.$/);
    const reported = { ...sum('BRL', 0n), reported: 6_000n };
    expect(say([groupOf('hold', 1)], { orders: 1, withBalance: 0, sums: [reported] })).toMatch(
      / Money: 1 order of 100\.00 BRL, with no balance\. Webhooks reported 60\.00 BRL that the service did not confirm\.$/,
    );
    expect(say([groupOf('hold', 1)], { orders: 1, sums, hasMisread: true })).toMatch(
      /-2\.50 USD\. A held payment of more than its order asks for is left out\.$/,
    );
  });

  it('says that there is more if not all orders were summed', () => {
    const money = { orders: 10_000, sums: [sum('BRL', 500n)], isWhole: false };
    expect(say([groupOf('hold', 1, 10_001)], money)).toMatch(/ Money: at least 10000 orders with a balance /);
  });

  it('says that none of it is about money only if nothing unsettled could have told of money', () => {
    for (const kind of ['link_missing', 'secret_unusable', 'webhook_address_changed']) {
      expect(say([groupOf(kind, 1)])).toMatch(/ None of it is about money\.$/);
    }
    for (const kind of ['shop_refuses_notices', 'money_untold', 'notices_dead']) {
      expect(say([groupOf(kind, 1)])).toMatch(/ The shop may not know of money\.$/);
    }
    for (const kind of ['service_unanswered', 'api_key_refused', 'merchant_inactive']) {
      expect(say([groupOf(kind, 1)])).toMatch(
        / settled cannot ask the service, so it learns of payments only from webhooks\.$/,
      );
    }
    for (const kind of ['event_dead', 'event_not_understood', 'link_mismatch', 'of_a_later_version']) {
      expect(say([groupOf('api_key_refused', 1), groupOf(kind, 1)])).toMatch(
        / Events that were not settled may be about money\.$/,
      );
    }
  });
});
