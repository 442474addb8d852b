import type { OpenedEngine } from '../engine.ts';
import type { Opened } from '../instance.ts';
import type { Store } from '../store.ts';
import { runBackup, startThread, type ThreadClient, type ThreadClientOptions } from './client.ts';
import type { ThreadStart } from './messages.ts';
import type { OpenOptions } from './open.ts';

export type SqliteStoreOptions = Pick<OpenOptions, 'path' | 'secretsKeyId' | 'olderKeyIds' | 'newInstanceId'> &
  Omit<ThreadClientOptions, 'start'>;

/** Verbs that only read; they are answered by a thread of their own, which no commit waits for. */
const READS = [
  'findOrder',
  'listOrders',
  'timeline',
  'listEvents',
  'findEvent',
  'listRejections',
  'listMatters',
  'listNotices',
  'findNotice',
  'readFeed',
  'findFeedEnd',
  'stats',
  'shopState',
  'countUnopenable',
  'storeState',
] as const satisfies readonly (keyof Store)[];

const WRITES = [
  'findCredentials',
  'recordDelivery',
  'recordHint',
  'recordRejection',
  'registerLink',
  'claimEvents',
  'settle',
  'retryEvent',
  'buryEvent',
  'requeueEvent',
  'resolveOrder',
  'endAttention',
  'endRefusals',
  'takeBudget',
  'returnBudget',
  'openIntent',
  'claimOpenings',
  'finishOpening',
  'keepServiceSecret',
  'retryOpening',
  'parkOpening',
  'closeOpening',
  'adoptLink',
  'claimChecks',
  'findLink',
  'recordReading',
  'failCheck',
  'recordReturn',
  'sweepBounds',
  'compareListed',
  'endRestore',
  'noteNoList',
  'catchUp',
  'cancelOrder',
  'claimNotices',
  'finishNotice',
  'retryNotice',
  'buryNotice',
  'resendNotice',
  'heartbeat',
  'hastenDue',
  'mendTimes',
  'listSecrets',
  'resealSecret',
  'addSecretsKey',
  'adoptSecretsKey',
  'dropBodies',
] as const satisfies readonly (keyof Store)[];

/** Opens the embedded store: one thread that writes with group commit, one that reads. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OpenedEngine> {
  const { path, secretsKeyId, olderKeyIds = [], newInstanceId, clock } = options;
  const start: ThreadStart = {
    role: 'writer',
    path,
    secretsKeyId,
    olderKeyIds,
    newInstanceId,
    nowMs: clock.nowMs(),
    backupTo: null,
  };
  const writer = await startThread({ ...options, start });
  const reader = await startThread({ ...options, onBatch: () => {}, start: { ...start, role: 'reader' } }).catch(
    async (error) => {
      await writer.close();
      throw error;
    },
  );
  const store = {
    ...storeVerbs({ reader, writer }),
    backup: ({ path: to }: { path: string }) => runBackup({ ...start, role: 'backup', backupTo: to }),
    close: async () => {
      await Promise.all([reader.close(), writer.close()]);
    },
  } as unknown as Store;
  const abandon = () => {
    writer.abandon();
    reader.abandon();
  };
  return { store, opened: writer.opened as Opened, abandon };
}

type Caller = Pick<ThreadClient, 'call'>;

/** The verbs of the contract that are called by name. */
export function storeVerbs({ reader, writer }: { reader: Caller; writer: Caller }): Record<string, unknown> {
  const verbs = (names: readonly string[], { call }: Caller) =>
    Object.fromEntries(names.map((name) => [name, (...args: unknown[]) => call(name, args)]));
  return { ...verbs(READS, reader), ...verbs(WRITES, writer) };
}
