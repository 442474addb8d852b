import { z } from 'zod';
import { releaseVersion } from '../release.ts';
import * as field from './fields.ts';
import { ok, operation } from './route.ts';

/** What is installed: versions, the store, the replicas that share it, and how it is set up. */

const leases = z.strictObject({ events: field.count, openings: field.count, notices: field.count });

const replica = field.component('Replica', 'A process that works, or worked within a day, on the same database.', {
  name: z.string(),
  version: z.string(),
  isThisOne: z.boolean().describe('Whether it is the one that answers.'),
  isAlive: z.boolean().describe('Whether it gave a sign of life within a minute.'),
  hasSameKey: z.boolean().describe('Whether it has the same secrets key as the one that answers.'),
  skewMs: z.int().describe("How far its clock was ahead of the database's."),
  leases: leases.describe('Rows that it has in work.'),
  startedAt: field.time,
  aliveAt: field.time,
});

const installation = z
  .strictObject({
    version: z.string(),
    node: z.string().describe('The version of Node that runs it.'),
    store: z.strictObject({
      engine: z.enum(['sqlite', 'postgres']),
      server: z.string(),
      name: z.string(),
      durabilityDeclared: z.string().nullable().describe('What SETTLED_STORE_DURABILITY declares; else null.'),
      id: z.string().describe('The same in all copies of this store, and in no other store.'),
    }),
    replica: z.string().nullable().describe('The process that answers; null if it has the database to itself.'),
    replicas: z.array(replica).describe('The oldest first; none if one process has the database to itself.'),
    lapsedLeases: leases.describe('Rows whose lease ended, and that no replica has taken over.'),
    secretsKey: z.strictObject({ id: z.string(), place: z.string() }),
    keepBodiesDays: z.number().describe('For how long bytes of deliveries and names of customers are kept.'),
    publicUrl: z.string().describe('Where the service delivers to.'),
    shopUrl: z.string().nullable().describe('Where notices go: without its path, which may be a secret.'),
    apiUrl: z.string().nullable().describe("Where the service's API is; null if none is configured."),
    apiSlots: field.count.describe('Requests a minute of the API budget.'),
    toleranceSeconds: field.count.describe('How old a delivery may be.'),
    currency: z.string(),
  })
  .meta({ id: 'Installation' });

export type InstallationDocument = z.infer<typeof installation>;

export const showInstallation = operation({
  summary: 'What is installed, and which replicas share the database',
  description: 'It sends no request and changes nothing. `/v1/admin/doctor` finds out whether all of it works.',
  answers: ok('What is installed.', { installation }),
  answer: async (options) => {
    const { store, storeAddress, storeName, storeId, clock, keyring, secretsKeyPlace, keepBodiesMs } = options;
    const { server, replicas, lapsed } = await store.storeState(clock.nowMs());
    return {
      installation: {
        version: releaseVersion(),
        node: process.version,
        store: {
          engine: storeAddress.engine,
          server,
          name: storeName,
          durabilityDeclared: options.storeDurability,
          id: storeId,
        },
        replica: options.replica,
        replicas: replicas.map(({ settings: _, secretsKeyId, ...row }) => ({
          ...field.withTimes(row),
          isThisOne: row.name === options.replica,
          hasSameKey: secretsKeyId === keyring.keyId,
        })),
        lapsedLeases: lapsed,
        secretsKey: { id: keyring.keyId, place: secretsKeyPlace },
        keepBodiesDays: keepBodiesMs / 86_400_000,
        publicUrl: options.publicUrl,
        shopUrl: options.shopAddress,
        apiUrl: options.apiUrl,
        apiSlots: options.apiSlots,
        toleranceSeconds: options.toleranceSeconds,
        currency: options.currency,
      },
    };
  },
});
