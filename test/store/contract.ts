import { afterAll, beforeAll, beforeEach, describe, onTestFailed, onTestFinished } from 'vitest';
import { hasFailed } from '../support/app.ts';
import { accessContract } from './contract/access.ts';
import { alertsContract } from './contract/alerts.ts';
import { budgetContract } from './contract/asking-budget.ts';
import { cancelContract } from './contract/asking-cancel.ts';
import { checksContract } from './contract/asking-checks.ts';
import { openingsContract } from './contract/asking-openings.ts';
import { quotesContract, readingsContract } from './contract/asking-readings.ts';
import { sweepContract } from './contract/asking-sweep.ts';
import { attentionContract } from './contract/attention.ts';
import { bulkContract } from './contract/bulk.ts';
import { changesContract } from './contract/changes.ts';
import { checksPropertyContract } from './contract/checks-property.ts';
import { clockStepsContract } from './contract/clock-steps.ts';
import { concurrencyContract } from './contract/concurrency.ts';
import { inboxContract } from './contract/inbox.ts';
import { intakeContract } from './contract/intake.ts';
import { linksContract } from './contract/links.ts';
import { listsContract } from './contract/lists.ts';
import { matterKindsContract } from './contract/matter-kinds.ts';
import { mattersContract } from './contract/matters.ts';
import { mattersPropertyContract } from './contract/matters-property.ts';
import { paymentsContract } from './contract/payments.ts';
import { queriesContract } from './contract/queries.ts';
import { retentionContract } from './contract/retention.ts';
import { serviceContract } from './contract/service.ts';
import { settlementContract } from './contract/settlement.ts';
import { statsContract } from './contract/stats.ts';
import { tellingContract } from './contract/telling.ts';
import { shopFailuresContract } from './contract/telling-failures.ts';
import { tellingPropertyContract } from './contract/telling-property.ts';
import { supersedingContract } from './contract/telling-superseding.ts';
import { wordsContract } from './contract/words.ts';
import { type ContractStore, World, type Worlds } from './contract/world.ts';

type Parts = Readonly<Record<string, (worlds: Worlds) => void>>;

/** What can be seen by one call after the other. */
export const IN_TURN: Parts = {
  intake: intakeContract,
  links: linksContract,
  inbox: inboxContract,
  settlement: settlementContract,
  payments: paymentsContract,
  queries: queriesContract,
  lists: listsContract,
  words: wordsContract,
  bulk: bulkContract,
  changes: changesContract,
  matters: mattersContract,
  attention: attentionContract,
  alerts: alertsContract,
  'each kind of matter': matterKindsContract,
  'matters, whatever happens': mattersPropertyContract,
  budget: budgetContract,
  openings: openingsContract,
  checks: checksContract,
  'checks, whatever happens': checksPropertyContract,
  readings: readingsContract,
  quotes: quotesContract,
  sweep: sweepContract,
  cancel: cancelContract,
  telling: tellingContract,
  'a shop that refuses': shopFailuresContract,
  'a notice that is refused': supersedingContract,
  'telling, whatever happens': tellingPropertyContract,
  retention: retentionContract,
  'clock steps': clockStepsContract,
  stats: statsContract,
  'what people see of the service': serviceContract,
  access: accessContract,
};
/** What only calls at once can show. */
export const AT_ONCE: Parts = { concurrency: concurrencyContract };

/**
 * What every engine must do, written against the `Store` contract alone. Most tests share one store and keep to orders
 * of their own; those that count or claim everything open a fresh one.
 */
export function storeContract(name: string, open: () => Promise<ContractStore>, parts: Parts): void {
  describe(`the store on ${name}`, () => {
    let opened: ContractStore;
    let world: World;
    let failed = false;

    beforeAll(async () => {
      opened = await open();
      world = new World(opened);
    });
    beforeEach(() => {
      world.tick(3_600_000);
      onTestFailed(() => {
        failed = true;
      });
    });
    afterAll(() => dispose(opened, failed));

    const worlds: Worlds = {
      shared: () => world,
      fresh: async () => {
        const own = await open();
        onTestFinished(({ task }) => dispose(own, hasFailed(task)));
        return new World(own);
      },
    };
    // A room for each: what it does before each of its tests is done before no other's.
    for (const [room, part] of Object.entries(parts)) describe(room, () => part(worlds));
  });
}

async function dispose(opened: ContractStore, failed: boolean): Promise<void> {
  const kept = await opened.dispose(failed ? 'failed' : 'passed');
  if (kept !== null) console.error(`the database of the failed test is kept in ${kept}`);
}
