import { describe, it } from 'vitest';
import { proveOpen } from './opening-kill.ts';

describe('a process killed while it opens ten links', () => {
  it('around the commit of an intent: every order gets exactly one link, whose webhooks verify', async () => {
    await proveOpen('1,2');
  });
});
