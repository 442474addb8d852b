import type { SessionDocument, TokenDocument } from '../api/access.ts';
import type { AuditDocument } from '../api/audit.ts';
import { PERSON_ROLES } from '../domain/access.ts';
import { UsageError } from '../terminal/failure.ts';
import { type Columns, table } from '../terminal/table.ts';
import { ROLE_WORDS } from '../vocabulary.ts';
import { defineCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { list, PAGE_OPTIONS } from './lists.ts';

/** The commands about people: their tokens and sessions, signing in, and what they did. */

export const tokensAdd = defineCommand({
  usage: 'tokens add NAME',
  about: 'make a token for a person or a program, and print it once',
  details: [
    `A viewer ${ROLE_WORDS.viewer}. An operator ${ROLE_WORDS.operator}. An admin ${ROLE_WORDS.admin}.`,
    'settled keeps only the SHA-256 of the token: it cannot be shown again. The audit shows NAME for what it does.',
    'To use it with these commands, set SETTLED_OPERATOR_TOKEN to it; from another machine, give --at and --token-file.',
  ],
  examples: ['settled tokens add ana --role operator --expires 90d'],
  options: {
    role: { value: 'ROLE', choices: PERSON_ROLES, needed: true, about: 'what it may do' },
    expires: { value: 'DAYS', about: 'when it ends, from 1d to 999d; it never does if this is left out' },
  },
  async run({ first: name, options: { role, expires }, server }) {
    const body = { name, role, ...(expires === undefined ? {} : { expires }) };
    const answer = await server().post<{ token: TokenDocument & { secret: string } }>('/v1/tokens', body);
    const { secret, expiresAt } = answer.token;
    const end = expiresAt === null ? 'It does not expire.' : `It expires at ${expiresAt}.`;
    return {
      data: answer,
      lines: [secret, '', `The token of ${name}, with the role ${role}. It is not shown again. ${end}`],
    };
  },
});

/** A command that shows a list which the API gives as a whole. */
function wholeList<R>(name: 'tokens' | 'sessions', about: string, columns: Columns<R>, nothing: string) {
  return defineCommand({
    usage: `${name} list`,
    about,
    async run({ server }) {
      const answer = await server().get<Record<string, R[]>>(`/v1/${name}`);
      return { data: answer, lines: table(answer[name] ?? [], columns, { nothing }) };
    },
  });
}

export const tokensList = wholeList<TokenDocument>(
  'tokens',
  'list named tokens, revoked ones last',
  { name: 'name', role: 'role', made: 'createdAt', expires: 'expiresAt', revoked: 'revokedAt' },
  'There are no named tokens.',
);

export const sessionsList = wholeList<SessionDocument>(
  'sessions',
  'list the browsers that are signed in to the console',
  { id: 'id', name: 'name', role: 'role', 'signed in': 'createdAt', used: 'usedAt' },
  'No browser is signed in.',
);

export const tokensRevoke = defineCommand({
  usage: 'tokens revoke NAME',
  about: 'revoke a token: it and the sessions that it signed in end at once',
  examples: ['settled tokens revoke ana'],
  async run({ first: name, server }) {
    const path = `/v1/tokens/${encodeURIComponent(name)}/revoke`;
    const answer = await server().post<{ token: TokenDocument }>(path);
    return { data: answer, lines: [`The token of ${name} is revoked.`] };
  },
});

export const sessionsEnd = defineCommand({
  usage: 'sessions end ID',
  about: 'sign a browser out, at every replica',
  examples: ['settled sessions end 12'],
  async run({ first: id, server }) {
    const answer = await server().post<{ session: SessionDocument }>(`/v1/sessions/${encodeURIComponent(id)}/end`);
    return { data: answer, lines: [`Session ${id} of ${answer.session.name} has ended.`] };
  },
});

export const openConsole = defineCommand({
  usage: 'console',
  about: 'print a link that signs your browser in to the console',
  details: [
    'The link works once, within 60 s: it shows a button, and pressing the button signs you in.',
    'You are signed in as the owner of the token that this command uses.',
    'SETTLED_CONSOLE_URL says where the console is, if not on this machine.',
  ],
  async run({ server }) {
    const answer = await server().post<{ link: { url: string; expiresAt: string } }>('/v1/sign-in-links');
    return { data: answer, lines: [answer.link.url] };
  },
});

const AUDIT_COLUMNS: Columns<AuditDocument> = {
  number: 'number',
  at: 'at',
  actor: 'actor',
  action: 'action',
  subject: 'subject',
  role: 'role',
  from: ({ origin, address }) => `${origin} ${address}`,
  reason: 'reason',
};

type Verified = { rows: number; isWhole: boolean; detail: string; head: string };

export const audit = defineCommand({
  usage: 'audit',
  about: 'list what people and named tokens did, the newest first',
  details: [
    "What the shop's token does is in the history of its orders: settled why ORDER.",
    '--verify computes every row anew. The command ends with 1 if a row was changed or removed, or cannot be',
    'verified. Rows that were removed from the end are found with --head: the log has the head after each change',
    '("head of the audit chain").',
  ],
  examples: ['settled audit --subject order-8001', 'settled audit --verify'],
  options: {
    actor: { value: 'NAME', about: 'only what they did' },
    subject: { value: 'TEXT', about: 'only what was done to this order, event, notice, matter, token or session' },
    verify: { about: 'verify the chain instead' },
    head: { value: 'NUMBER:MAC', about: 'with --verify: a head that the log has, which must still be there' },
    ...PAGE_OPTIONS,
  },
  async run({ options: { actor, subject, verify, head, ...page }, server }) {
    if (verify !== true && head !== undefined) throw new UsageError('--head needs --verify.');
    if (verify === true) {
      const verified = await server().get<Verified>('/v1/audit/verification', { head });
      const { rows, isWhole, detail } = verified;
      const lines = [detail, `Verified: ${rows}. Head: ${verified.head}`];
      return { data: verified, lines, exit: isWhole ? EXIT.ok : EXIT.refused };
    }
    const listed = { list: 'audit', columns: AUDIT_COLUMNS, nothing: 'No changes so far.' } as const;
    return list(server(), listed, { actor, subject, ...page });
  },
});
