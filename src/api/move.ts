import { z } from 'zod';
import { problem } from './problem.ts';
import { answer, operation, recordAction } from './route.ts';

const MOVE = { store: '/data/settled.db' };

const move = z.strictObject({
  store: z
    .string()
    .describe('The file that settled lets go of.')
    .meta({ examples: [MOVE.store] }),
});

export const letGo = operation({
  summary: 'Let go of the database, so that `settled move` can move the rest of it',
  description:
    'Only `settled move` sends this, when all rows but the newest are copied. settled then answers every request with 503 and ' +
    '`Retry-After`, ends what is in hand, and closes the database. If the move is not completed, it serves on; if it is, it ' +
    'answers 503 until a person stops it.',
  answers: { 202: answer('settled lets go of the database now.', { move }, { move: MOVE }) },
  problems: { 409: ['store_not_movable'] },
  answer: async (options, { by }, response) => {
    const { storeAddress, storeName, onLetGo } = options;
    if (storeAddress.engine === 'postgres') {
      const detail =
        `The store is ${storeName} already, and settled moves SQLite stores only. To move a PostgreSQL database, stop every ` +
        'replica and use pg_dump and pg_restore: see Restore in docs/postgres.md.';
      throw problem(409, 'store_not_movable', detail);
    }
    await recordAction(options, by, { action: 'move', subject: '' });
    // This answer is the last of the store's.
    response.once('close', onLetGo);
    response.status(202);
    return { move: { store: storeName } };
  },
});
