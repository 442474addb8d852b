import type { RequestHandler } from 'express';
import { shellWord, shownMatter } from '../domain/advice.ts';
import { concernOf, type MatterGroup, type MatterKind, type MoneySum } from '../domain/matter.ts';
import { formatAmount } from '../domain/money.ts';
import { orderDocument } from '../domain/notice.ts';
import { sendProblem } from '../http/problem.ts';
import type { ListedMatter, MatterPlace, Matters } from '../store/queries.ts';
import { inWords } from '../work/clock.ts';
import { openCursor, readKey, writeCursor } from './cursors.ts';
import { heldWords } from './explain.ts';
import { attentionQuery } from './list_queries.ts';
import type { ApiOptions } from './options.ts';
import { refuseCursor } from './pages.ts';
import { endRequest, read } from './requests.ts';
import { iso, isoOrNull } from './times.ts';
import { inNumber, words } from './words.ts';

/** `GET /v1/attention`: what needs a person, money first. Every other surface says what this list says. */
export function listAttention({ store, clock, asking }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const query = read(attentionQuery, request.query, response);
    if (query === null) return;
    const { kind = null, state = null, limit, cursor } = query;
    const after = cursor === undefined ? null : readPlace(cursor);
    if (after === undefined) return refuseCursor(response);
    // One row more than was wanted tells whether there is another page.
    const matters = await store.listMatters({ kind, state, after, limit: limit + 1 });
    const shown = matters.rows.slice(0, limit);
    const last = shown.at(-1);
    response.json({
      summary: summaryDocument(matters, { nowMs: clock.nowMs(), isFiltered: kind !== null || state !== null }),
      groups: matters.groups.map(groupDocument),
      attention: shown.map((matter) => matterDocument(matter, asking !== null)),
      nextCursor: matters.rows.length > limit && last ? writePlace(last) : null,
    });
  };
}

function writePlace({ kind, openedAtMs, key }: MatterPlace): string {
  return writeCursor(`m${kind}.${openedAtMs}.${key}`);
}

/** Undefined if the cursor is not one of this list. */
function readPlace(cursor: string): MatterPlace | undefined {
  const match = /^m([a-z_]{1,64})\.(0|[1-9][0-9]{0,14})\.([1-9][0-9]{0,14})$/.exec(openCursor(cursor) ?? '');
  if (match === null) return undefined;
  return { kind: match[1] as MatterKind, openedAtMs: Number(match[2]), key: Number(match[3]) };
}

type Saying = { nowMs: number; isFiltered: boolean };

function summaryDocument(matters: Pick<Matters, 'groups' | 'money'>, saying: Saying): object {
  const { groups, money } = matters;
  const oldestAtMs = groups.length === 0 ? null : Math.min(...groups.map((group) => group.oldestAtMs));
  return {
    sentence: sayMatters(matters, saying),
    matters: groups.reduce((sum, { count }) => sum + count, 0),
    oldestAt: isoOrNull(oldestAtMs),
    money: { ...money, sums: money.sums.map(sumDocument) },
  };
}

/** One sentence or two for a person who asks whether anything is wrong. */
export function sayMatters({ groups, money }: Pick<Matters, 'groups' | 'money'>, saying: Saying): string {
  const { nowMs, isFiltered } = saying;
  if (groups.length === 0) {
    return isFiltered ? 'Nothing that was asked for needs a person.' : 'Nothing needs a person.';
  }
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  const waited = inWords(Math.max(0, nowMs - Math.min(...groups.map(({ oldestAtMs }) => oldestAtMs))));
  const needs = `${inNumber(count, 'matter needs', 'matters need')} a person; the oldest has waited ${waited}.`;
  return `${needs} ${money.orders === 0 ? sayNoMoney(groups) : sayMoney(money)}`;
}

/** What was not settled, or a kind that a later version wrote, may tell of a payment that nobody counted. */
function sayNoMoney(groups: readonly MatterGroup[]): string {
  const concerns = groups.map(({ kind }) => concernOf(kind));
  const mayTell = concerns.some((concern) => concern === undefined || concern === 'unsettled');
  return mayTell ? 'What was not settled may be about money.' : 'None of it is about money.';
}

function sayMoney({ orders, sums, isWhole }: Matters['money']): string {
  const held = sums.filter(({ balance }) => balance !== 0n);
  const captured =
    held.length === 0
      ? 'nothing was captured'
      : `${held.map(({ balance, currency }) => `${currency} ${formatAmount({ amountMinor: balance, currency })}`).join(' and ')} captured`;
  const more = isWhole ? '' : 'at least ';
  return `Money: ${captured} on ${more}${inNumber(orders, 'order', 'orders')}.`;
}

function sumDocument({ currency, asked, balance }: MoneySum): object {
  const written = (amountMinor: bigint) => formatAmount({ amountMinor, currency });
  return { currency, asked: written(asked), balance: written(balance) };
}

function groupDocument({ kind, reason, count, oldestAtMs, sums }: MatterGroup): object {
  return {
    kind,
    reason,
    concern: concernOf(kind) ?? null,
    meaning: reason === null ? words.matter(kind) : words.holdReason(reason),
    count,
    oldestAt: iso(oldestAtMs),
    sums: sums.map(sumDocument),
  };
}

function matterDocument(matter: ListedMatter, canAsk: boolean): object {
  const { kind, key, reason, subject, count, openedAtMs, lastAtMs, order } = matter;
  return {
    id: kind === 'hold' ? null : String(key),
    kind,
    reason,
    concern: concernOf(kind) ?? null,
    subject,
    reference: order?.reference ?? null,
    detail: detailOf(matter, canAsk),
    count,
    openedAt: iso(openedAtMs),
    lastAt: iso(lastAtMs),
    order: order === null ? null : orderDocument(order),
  };
}

function detailOf({ detail, key, order }: ListedMatter, canAsk: boolean): string {
  if (detail !== null) return shownMatter(detail, { key, canAsk });
  if (order === null) return '';
  const word = shellWord(order.reference);
  const resolve = `settled orders resolve ${word}`;
  return (
    `${heldWords(order)} More about it: settled why ${word}. Take the money as it came: ${resolve} --accept --reason TEXT. Or ` +
    `cancel the order and refund the money: ${resolve} --reject --reason TEXT`
  );
}

/** `POST /v1/attention/:id/end`: a person says that a matter is over. */
export function endAttention({ store, clock, log }: ApiOptions): RequestHandler {
  return async (request, response) => {
    const asked = read(endRequest, request.body, response);
    if (asked === null) return;
    const id = String(request.params.id);
    const atMs = clock.nowMs();
    const key = readKey(id);
    const ended = key === null ? null : await store.endAttention({ key, ...asked, atMs });
    if (ended !== null) {
      const { kind, reference } = ended;
      log.info(
        { ...(reference === null ? {} : { order: reference }), kind, matter: id, by: 'person' },
        'a matter was ended',
      );
      response.json({ attention: { id, endedAt: iso(atMs) } });
      return;
    }
    const detail = `No open matter has the id ${id}: it may have ended. See: settled attention`;
    sendProblem(response, { status: 404, code: 'not_found', detail });
  };
}
