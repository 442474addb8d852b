import { describe, it } from 'vitest';
import { proveOpen } from './opening-kill.ts';

describe('a process killed while it asks the service for ten links', () => {
  it('from the request to what is stored of its answer: every order gets exactly one link, whose webhooks verify', async () => {
    await proveOpen('3,4,5');
  });
});
