import { describe, expect, it } from 'vitest';
import { openFindLink } from '../../src/receive/route.ts';
import type { Credentials, LinkCredentials } from '../../src/secrets/credentials.ts';
import type { CredentialsKey } from '../../src/store/verbs/secrets.ts';
import { LINK, serveHook } from './serve_hook.ts';

const link = (token: string): LinkCredentials => ({ linkKey: 1, reference: 'order-1', token, secret: 'x'.repeat(24) });

/** A store that answers when the test says so. `known` was named by a delivery before. */
function openSlowly(known: readonly string[] = []) {
  const asked: CredentialsKey[] = [];
  const answers: (() => void)[] = [];
  const credentials: Credentials = {
    cachedByToken: () => undefined,
    cachedByLinkKey: () => undefined,
    cachedByLinkId: () => undefined,
    knows: (token) => known.includes(token),
    find: (by) => {
      asked.push(by);
      return new Promise((resolve) =>
        answers.push(() => resolve('token' in by && known.includes(by.token) ? link(by.token) : null)),
      );
    },
    keep: () => {},
    noteLinkId: () => {},
    forget: () => {},
  };
  return { findLink: openFindLink(credentials), asked, answers };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('receive: look-ups of what may be no link', () => {
  it('are in the queue of the store only a few at once, in their order', async () => {
    const { findLink, asked, answers } = openSlowly();
    const all = Array.from({ length: 600 }, (_, n) => findLink({ token: `token-${n}` }));
    await turn();
    expect(asked).toHaveLength(256);
    while (answers.length > 0) {
      for (const answer of answers.splice(0)) answer();
      await turn();
      expect(answers.length).toBeLessThanOrEqual(256);
    }
    expect(asked).toEqual(all.map((_, n) => ({ token: `token-${n}` })));
    expect(new Set(await Promise.all(all))).toEqual(new Set([null]));
  });

  it('do not delay a link that was named before', async () => {
    const { findLink, asked } = openSlowly(['known']);
    for (let n = 0; n < 600; n++) void findLink({ token: `token-${n}` });
    void findLink({ token: 'known' });
    await turn();
    expect(asked).toHaveLength(257);
    expect(asked).toContainEqual({ token: 'known' });
  });

  it('do not delay a link that was named before by its id', async () => {
    const { findLink, asked } = openSlowly(['pl_known']);
    for (let n = 0; n < 400; n++) void findLink({ linkId: `pl_${n}` });
    void findLink({ linkId: 'pl_known' });
    await turn();
    expect(asked).toHaveLength(257);
    expect(asked).toContainEqual({ linkId: 'pl_known' });
  });

  it('are given up when too many wait, the longest first: a link that comes last gets through', async () => {
    const { findLink, asked, answers } = openSlowly();
    const flood = Array.from({ length: 2_256 }, (_, n) => findLink({ linkId: `pl_${n}` }));
    const given = Promise.allSettled(flood);
    const genuine = findLink({ token: 'one more' });
    await expect(flood[256]).rejects.toMatchObject({ code: 'store_busy', kind: 'transient' });
    while (answers.length > 0) {
      for (const answer of answers.splice(0)) answer();
      await turn();
    }
    expect(await genuine).toBeNull();
    expect(asked.at(-1)).toEqual({ token: 'one more' });
    expect((await given).filter(({ status }) => status === 'rejected')).toHaveLength(1);
  });
});

describe('receive: look-ups of links whose deliveries were refused unread', () => {
  it('are four at once; what is refused meanwhile is not noted, and what is refused after that is', async () => {
    const answers: ((found: LinkCredentials | null) => void)[] = [];
    const { url, outcomes, unread } = await serveHook({ find: () => new Promise((resolve) => answers.push(resolve)) });
    const noted = () => unread.length;
    const refuse = async (count: number) => {
      for (let n = 0; n < count; n++) expect((await fetch(url, { method: 'PUT' })).status).toBe(405);
    };
    const answer = async (count: number, found: LinkCredentials | null, notedThen: number) => {
      for (const one of answers.splice(0, count)) one(found);
      await turn();
      expect(noted()).toBe(notedThen);
    };
    // One below, reached, and beyond: each is answered at once, however long the look-ups take.
    await refuse(3);
    expect(answers).toHaveLength(3);
    await refuse(1);
    expect(answers).toHaveLength(4);
    await refuse(2);
    expect([answers.length, outcomes.length, noted()]).toEqual([4, 6, 0]);
    // Found or not, each look-up makes room for another.
    await answer(1, LINK, 1);
    await answer(1, null, 1);
    await refuse(3);
    expect(answers).toHaveLength(4);
    await answer(4, LINK, 5);
    await refuse(5);
    await answer(4, LINK, 9);
    expect(new Set(unread.map(String))).toEqual(new Set(['1,method_not_allowed']));
    expect([answers.length, outcomes.length]).toEqual([0, 14]);
  });
});
