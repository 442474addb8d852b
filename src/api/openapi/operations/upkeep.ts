import { z } from 'zod';
import { tailQuery } from '../../list_queries.ts';
import { reconcileRequest } from '../../requests.ts';
import type { Operation } from '../../route.ts';
import { activityLine } from '../schemas/activity.ts';
import {
  backupAnswer,
  doctorAnswer,
  live,
  notReady,
  ready,
  reconcileAnswer,
  rotationAnswer,
  statsAnswer,
} from '../schemas/upkeep.ts';
import { ASKING } from './orders.ts';

const group = 'Operation';

export const tail: Operation = {
  id: 'tail',
  group,
  summary: 'What happens, as it happens',
  description:
    'A line of JSON for each (NDJSON), until the caller leaves or settled stops; `settled tail` prints it. A reader that is ' +
    'too slow loses lines, and is told how many: what happened for certain is in the store. Ten may follow at once.',
  query: tailQuery,
  answers: { 200: { when: 'A stream of lines.', schema: activityLine, type: 'application/x-ndjson' } },
};

export const showStats: Operation = {
  id: 'showStats',
  group,
  summary: 'Counts of everything',
  answers: { 200: { when: 'The counts.', schema: statsAnswer } },
};

export const doctor: Operation = {
  id: 'doctor',
  group,
  summary: 'Check the installation',
  description:
    'It sends a signed delivery to itself through the public address, and asks the service who it is. Where the database ' +
    'cannot be read, that is a check that fails, and those that need it are left out.',
  answers: { 200: { when: 'What was found.', schema: doctorAnswer } },
  answersWithoutStore: true,
};

export const reconcile: Operation = {
  id: 'reconcile',
  group,
  summary: 'Ask the service about every link that can still be paid',
  description:
    'All of them become due now, and are asked about as the API budget allows. With `reference` the link of that order is ' +
    'asked about, and the answer comes when that is settled.',
  body: reconcileRequest,
  answers: { 200: { when: 'What it costs.', schema: reconcileAnswer } },
  problems: [[404, 'not_found'], ...ASKING],
  example: { body: { dryRun: true } },
};

export const makeBackup: Operation = {
  id: 'makeBackup',
  group,
  summary: 'Write a consistent copy of the database beside it, while serving',
  description: 'One at a time. Of a PostgreSQL `pg_dump` does it, and settled does not.',
  answers: { 201: { when: 'The copy is on the disk.', schema: backupAnswer } },
  problems: [[409, 'backup_not_ours_to_make']],
};

export const rotateKey: Operation = {
  id: 'rotateKey',
  group,
  summary: 'Change the key under which signing secrets rest, while serving',
  description:
    'Where the key is a file beside the database, a new one is made and the one before is kept in a file of its own. Where ' +
    'it comes from `SETTLED_SECRETS_KEY`, settled is started with the new one there and the one before in ' +
    '`SETTLED_SECRETS_KEY_PREVIOUS`. The answer comes when every secret rests under the new key; one that is asked for ' +
    'meanwhile is the same.',
  answers: { 200: { when: 'All secrets rest under the key that is named.', schema: rotationAnswer } },
  problems: [[409, 'key_not_ours_to_change']],
};

export const scrape: Operation = {
  id: 'metrics',
  group: 'Health',
  summary: 'Metrics for Prometheus',
  answers: { 200: { when: 'The metrics.', schema: z.string(), type: 'text/plain' } },
};

export const livez: Operation = {
  id: 'livez',
  group: 'Health',
  summary: 'Whether the process answers',
  answers: { 200: { when: 'It does.', schema: live } },
};

export const readyz: Operation = {
  id: 'readyz',
  group: 'Health',
  summary: 'Whether it should get deliveries',
  answers: {
    200: { when: 'It should.', schema: ready },
    503: { when: 'It should not: its store cannot be written, or it is stopping.', schema: notReady },
  },
};

export const showDocument: Operation = {
  id: 'openapi',
  group: 'Health',
  summary: 'This document as OpenAPI 3.1',
  answers: { 200: { when: 'The document.', schema: z.looseObject({ openapi: z.string() }) } },
};

export const showPage: Operation = {
  id: 'docs',
  group: 'Health',
  summary: 'This document for people',
  answers: { 200: { when: 'The page.', schema: z.string(), type: 'text/html' } },
};

export const showIndex: Operation = {
  id: 'index',
  group: 'Health',
  summary: 'What is at this address, for people',
  answers: { 200: { when: 'The page.', schema: z.string(), type: 'text/html' } },
};
