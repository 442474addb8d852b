import { feedQuery, noticesQuery } from '../../list_queries.ts';
import type { Operation } from '../../route.ts';
import { feedPage, noticeAnswer, noticeId, noticesPage, resendAnswer } from '../schemas/notice.ts';

export const readFeed: Operation = {
  id: 'readFeed',
  group: 'Feed',
  summary: 'Every notice after a cursor, the oldest first',
  description:
    'Nothing appears behind a cursor that was read past, and nothing is left out: keep the `cursor` of the answer in the ' +
    'transaction that does what its notices ask for, and give it back as `after`. Notices of one order come in its order. A ' +
    'page ends before its notices come to more than 1 MiB, with one at least: `more` says whether there are others.\n\n' +
    'With `wait` it answers when there is something, or after so many seconds with none. A settled that is stopping, or has ' +
    'many readers that wait, answers at once.\n\n' +
    'With `after=now` it answers at once, with no notices and the cursor of the end: a shop that begins empty goes on from ' +
    'there, and never reads what happened before.',
  query: feedQuery,
  answers: { 200: { when: 'The notices after the cursor; none where there are none.', schema: feedPage } },
  problems: [[410, 'cursor_from_before_restore']],
  example: { query: 'limit=100&wait=30' },
};

export const listNotices: Operation = {
  id: 'listNotices',
  group: 'Notices',
  summary: 'List notices, the newest first',
  query: noticesQuery,
  answers: { 200: { when: 'A page of notices.', schema: noticesPage } },
  example: { query: 'status=dead' },
};

export const showNotice: Operation = {
  id: 'showNotice',
  group: 'Notices',
  summary: 'One notice with its body',
  pathId: noticeId,
  answers: { 200: { when: 'The notice.', schema: noticeAnswer } },
};

export const resendNotice: Operation = {
  id: 'resendNotice',
  group: 'Notices',
  summary: 'Send a notice once more',
  description:
    'One that the shop took, or that was given up; and at once one that waits for its next attempt. Its id stays. Where ' +
    'another one of its order has its turn, it is sent after that one: `waitsFor`.',
  pathId: noticeId,
  answers: { 202: { when: 'It is sent again.', schema: resendAnswer } },
  problems: [[409, 'notice_in_work']],
};
