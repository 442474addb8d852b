import { z } from 'zod';
import { digest, randomSecret } from '../access/identify.ts';
import { PERSON_ROLES, SIGN_IN_LINK_MS } from '../domain/access.ts';
import { iso } from '../explain/glossary.ts';
import type { TokenSummary } from '../store/verbs/access.ts';
import type { Author } from '../store/verbs/audit.ts';
import { ROLE_WORDS } from '../vocabulary.ts';
import * as field from './fields.ts';
import { noSuch, problem } from './problem.ts';
import { type ApiOptions, answer, ok, operation } from './route.ts';

/** Who may use settled: named tokens and signed-in browsers. */

const role = field.names('PersonRole', PERSON_ROLES, (name) => ROLE_WORDS[name]);

const tokenName = field
  .text(64)
  .regex(
    /^[\p{L}\p{N}]+([@._ -][\p{L}\p{N}]+)*$/u,
    'must be letters and digits, with single spaces or @._- between them',
  )
  .meta({ description: 'Name of the person or program with the token; the audit shows it.', examples: ['ana'] });

const token = {
  name: z.string().meta({ examples: ['ana'] }),
  role,
  createdAt: field.time,
  expiresAt: field.timeOrNull,
  revokedAt: field.timeOrNull,
};

const tokenSchema = field.component('AccessToken', 'A named token. settled keeps only its SHA-256.', token);

export type TokenDocument = z.infer<typeof tokenSchema>;

export const listTokens = operation({
  summary: 'List named tokens',
  answers: ok('All tokens, revoked ones last.', { tokens: z.array(tokenSchema) }),
  answer: async ({ store }) => ({ tokens: (await store.listTokens()).map(tokenDocument) }),
});

export const addToken = operation({
  summary: 'Make a named token',
  description: 'Only this answer contains the token. settled keeps only its SHA-256.',
  body: z.strictObject({
    name: tokenName,
    role,
    expires: z
      .string()
      .regex(/^[1-9][0-9]{0,2}d$/, 'must be 1d to 999d')
      .optional()
      .meta({ description: 'The number of days until it expires. Without this, it never expires.', examples: ['90d'] }),
  }),
  answers: {
    201: answer('The token is valid now.', {
      token: z.strictObject({ ...token, secret: z.string().describe('Send it as `Authorization: Bearer SECRET`.') }),
    }),
  },
  problems: { 409: ['token_name_taken'] },
  example: { name: 'ana', role: 'operator', expires: '90d' },
  answer: async ({ store, clock, log }, { body: { name, role: given, expires }, by }, response) => {
    const secret = randomSecret();
    const atMs = clock.nowMs();
    const expiresAtMs = expires === undefined ? null : atMs + Number.parseInt(expires, 10) * 86_400_000;
    const made = { name, role: given, sha256: digest(secret), expiresAtMs };
    const added = await store.addToken({ ...made, by: person(by), atMs });
    if (added === 'taken') {
      const detail = `There already is a token named ${name}. Revoke it first, or choose another name.`;
      throw problem(409, 'token_name_taken', detail);
    }
    log.info({ token: name, role: given, by: by?.name }, 'a token was made');
    response.status(201);
    return { token: { ...tokenDocument(added), secret } };
  },
});

export const revokeToken = operation({
  summary: 'Revoke a named token',
  description: 'The token, and every session that it signed in, end at once on every replica.',
  pathId: field.anyText("The token's name.", 'ana'),
  answers: ok('It is revoked.', { token: tokenSchema }),
  answer: async ({ store, clock, log }, { id: name, by }) => {
    const revoked = await store.revokeToken({ name, by: person(by), atMs: clock.nowMs() });
    if (revoked === null) throw problem(404, 'not_found', `There is no token named ${name}, or it was revoked before.`);
    log.info({ token: name, by: by?.name }, 'a token was revoked');
    return { token: tokenDocument(revoked) };
  },
});

function tokenDocument({ key: _, ...row }: TokenSummary): object {
  return field.withTimes(row);
}

const session = field.component('Session', 'A browser that signed in.', {
  id: field.rowId,
  name: z.string().describe('Of the token that signed it in; `operator` for `SETTLED_OPERATOR_TOKEN`.'),
  role,
  createdAt: field.time,
  usedAt: field.time.describe('It is noted every few minutes.'),
  endedAt: field.timeOrNull,
});

export type SessionDocument = z.infer<typeof session>;

export const listSessions = operation({
  summary: 'List signed-in browsers',
  answers: ok('Sessions that have not ended, the newest first.', { sessions: z.array(session) }),
  answer: async ({ store, clock, access: { bootstrapSha256 } }) => {
    const sessions = await store.listSessions({ bootstrapSha256, nowMs: clock.nowMs() });
    return { sessions: sessions.map(field.rowDocument) };
  },
});

export const endSession = operation({
  summary: 'Sign a browser out',
  pathId: field.rowId,
  answers: ok('The session has ended on every replica.', { session }),
  answer: async ({ store, clock, log }, { id, by }) => {
    const key = field.readKey(id);
    const ended = key === null ? null : await store.endSession({ key, by: person(by), atMs: clock.nowMs() });
    if (ended === null) throw noSuch('session', id);
    log.info({ session: id, by: by?.name }, 'a session was ended');
    return { session: field.rowDocument(ended) };
  },
});

export const addSignInLink = operation({
  summary: 'Create a link that signs a browser in once',
  description: 'The browser that opens it within 60 s shows a button, which signs it in as the owner of the token.',
  answers: { 201: answer('The link.', { link: z.strictObject({ url: z.string(), expiresAt: field.time }) }) },
  problems: { 409: ['token_needed'] },
  answer: async ({ store, clock, access }, { caller, by }, response) => {
    const { tokenSha256, name } = caller;
    const author = person(by);
    if (tokenSha256 === null)
      throw problem(409, 'token_needed', 'A signed-in browser cannot create a link. Use a token.');
    const secret = randomSecret();
    const atMs = clock.nowMs();
    const expiresAtMs = atMs + SIGN_IN_LINK_MS;
    const made = { name, role: author.role, sha256: digest(secret), tokenSha256, expiresAtMs };
    await store.addSignInLink({ ...made, by: author, atMs });
    response.status(201);
    return {
      link: {
        url: `${consoleUrl(access.address, response.req.socket.localPort)}/sign-in?link=${secret}`,
        expiresAt: iso(expiresAtMs),
      },
    };
  },
});

function consoleUrl(address: ApiOptions['access']['address'], port: number | undefined): string {
  return address === null ? `http://127.0.0.1:${port}` : address.origin + address.path;
}

/** The caller of a route that the shop may not use. */
function person(by: Author | null): Author {
  if (by === null) throw new Error('a route for people alone was called without one');
  return by;
}
