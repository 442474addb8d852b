import { attentionQuery, eventsQuery, rejectionsQuery } from '../../list_queries.ts';
import { endRequest } from '../../requests.ts';
import type { Operation } from '../../route.ts';
import { attentionPage, endAnswer } from '../schemas/attention.ts';
import { eventAnswer, eventsPage, rejectionsPage, replayAnswer, rowId } from '../schemas/event.ts';

const group = 'Events';

export const listEvents: Operation = {
  id: 'listEvents',
  group,
  summary: 'List recorded events, the newest first',
  description: "Answers of the service's API are among them: `reading` tells them apart.",
  query: eventsQuery,
  answers: { 200: { when: 'A page of events.', schema: eventsPage } },
  example: { query: 'status=dead' },
};

export const showEvent: Operation = {
  id: 'showEvent',
  group,
  summary: 'One event with its body',
  pathId: rowId,
  answers: { 200: { when: 'The event.', schema: eventAnswer } },
};

export const replayEvent: Operation = {
  id: 'replayEvent',
  group,
  summary: 'Settle an event again',
  description:
    'It is verified and decided anew; what was counted is not counted twice. A settled event that cannot be verified any ' +
    'more, because its secret was corrected since, stays as it was settled, and its `fault` says why.',
  pathId: rowId,
  answers: { 202: { when: 'It is pending again.', schema: replayAnswer } },
  problems: [
    [409, 'event_in_work'],
    [409, 'event_body_dropped'],
  ],
};

export const listRejections: Operation = {
  id: 'listRejections',
  group,
  summary: 'Deliveries that were refused as not authentic',
  description: 'They never touch an order.',
  query: rejectionsQuery,
  answers: { 200: { when: 'A page, one row per order and reason.', schema: rejectionsPage } },
};

export const listAttention: Operation = {
  id: 'listAttention',
  group: 'Operation',
  summary: 'What needs a person, money first',
  description:
    'Held orders, refunds that are due and open matters as one list, with a summary of it. `settled attention`, doctor and ' +
    'the metrics say what it says.',
  query: attentionQuery,
  answers: { 200: { when: 'The summary, all groups, and a page of matters.', schema: attentionPage } },
  example: { query: 'kind=hold' },
};

export const endAttention: Operation = {
  id: 'endAttention',
  group: 'Operation',
  summary: 'Say that a matter is over',
  description: 'It is raised anew where its cause comes again.',
  pathId: rowId,
  body: endRequest,
  answers: { 200: { when: 'The matter has ended.', schema: endAnswer } },
  example: { body: { reason: "refunded in the service's panel" } },
};
