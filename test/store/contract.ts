import { afterAll, beforeAll, beforeEach, describe, onTestFailed, onTestFinished } from 'vitest';
import { budgetContract } from './contract/asking-budget.ts';
import { cancelContract } from './contract/asking-cancel.ts';
import { checksContract } from './contract/asking-checks.ts';
import { openingsContract } from './contract/asking-openings.ts';
import { quotesContract, readingsContract } from './contract/asking-readings.ts';
import { sweepContract } from './contract/asking-sweep.ts';
import { concurrencyContract } from './contract/concurrency.ts';
import { inboxContract } from './contract/inbox.ts';
import { intakeContract } from './contract/intake.ts';
import { linksContract } from './contract/links.ts';
import { queriesContract } from './contract/queries.ts';
import { retentionContract } from './contract/retention.ts';
import { settlementContract } from './contract/settlement.ts';
import { statsContract } from './contract/stats.ts';
import { tellingContract } from './contract/telling.ts';
import { tellingPropertyContract } from './contract/telling-property.ts';
import { type ContractStore, World, type Worlds } from './contract/world.ts';

/**
 * What every engine must do, written against the `Store` contract alone. Most tests share one store and keep to orders
 * of their own; those that count or claim everything open a fresh one.
 */
export function storeContract(name: string, open: () => Promise<ContractStore>): void {
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
        let ownFailed = false;
        onTestFailed(() => {
          ownFailed = true;
        });
        onTestFinished(() => dispose(own, ownFailed));
        return new World(own);
      },
    };
    intakeContract(worlds);
    linksContract(worlds);
    inboxContract(worlds);
    settlementContract(worlds);
    queriesContract(worlds);
    budgetContract(worlds);
    openingsContract(worlds);
    checksContract(worlds);
    readingsContract(worlds);
    quotesContract(worlds);
    sweepContract(worlds);
    cancelContract(worlds);
    tellingContract(worlds);
    tellingPropertyContract(worlds);
    retentionContract(worlds);
    statsContract(worlds);
    concurrencyContract(worlds);
  });
}

async function dispose(opened: ContractStore, failed: boolean): Promise<void> {
  const kept = await opened.dispose(failed ? 'failed' : 'passed');
  if (kept !== null) console.error(`the database of the failed test is kept in ${kept}`);
}
