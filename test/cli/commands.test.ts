import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { type ReservedLink, startTestApp, testFolder } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { freePort } from '../support/network.ts';
import { runSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, failing, say } from './settled.ts';

const settled = sharedApp();
const run = (args: string[], code?: number) => say(args, environmentOf(settled()), code);
const fail = (args: string[]) => failing(args, environmentOf(settled()));

/** One order of each kind, made once: `paid`, `held-1` … `held-4`, `refused`, and `mismatch` with a dead event. */
let paid: ReservedLink;
beforeAll(async () => {
  paid = await settled().reserve('paid');
  await deliver(paid, '100.00');
  for (const reference of ['held-1', 'held-2', 'held-3', "held 'four'"]) {
    await deliver(await settled().reserve(reference), '60.00');
  }
  const refused = await settled().reserve('refused');
  await settled().deliver(refused, '{}', signedHeaders('another-secret-altogether', '{}'));
  const mismatch = await settled().reserve('mismatch');
  await deliver(mismatch, '100.00');
  await settled().deliver(mismatch, paymentEvent({ linkId: 'pl_of_another', amount: '100.00' }));
  await eventually(async () => {
    const { stats } = (await settled().api('/v1/stats')).body;
    expect(stats).toMatchObject({ events: { pending: 0, leased: 0, dead: 1 }, rejections: 1 });
    expect(stats.matters).toMatchObject([{ kind: 'hold', count: 4 }, { kind: 'link_mismatch' }]);
  });
});

async function deliver(link: ReservedLink, amount: string): Promise<void> {
  const body = paymentEvent({ linkId: `pl_${link.reference}`, amount, paymentId: `pay_${link.reference}` });
  expect((await settled().deliver(link, body)).status).toBe(200);
}

describe('cli: links', () => {
  it('reserve shows the webhookUrl, and the secret this once', async () => {
    const end = await runSettled(['links', 'reserve', 'fresh', '--amount', '25.50'], environmentOf(settled()));
    const [, secret = ''] = /webhookSecret +(\S+)/.exec(end.stdout) ?? [];
    expect(secret).toHaveLength(43);
    expect(end.stdout).toMatch(/webhookUrl +http:\/\/127\.0\.0\.1:8787\/hooks\/\S{32}/);
    expect(end.stdout).toMatch(/amount +25\.50 BRL/);

    const { text, data } = await run(['links', 'reserve', 'fresh', '--amount', '25.50']);
    expect(text).toContain('not shown again');
    expect(JSON.stringify(data) + text).not.toContain(secret);
    expect(data).toMatchObject({ link: { id: null }, order: { reference: 'fresh', amount: '25.50' } });
  });

  it('add registers a link that exists, with its secret from a file', async () => {
    const args = ['links', 'add', 'added', '--amount', '30', '--currency', 'USD', '--id', 'pl_added'];
    const file = join(testFolder(), 'secret');
    writeFileSync(file, 'the-secret-of-the-added-link\r\n');
    const { text, data } = await run([...args, '--secret-file', file]);
    expect(text).toContain('Link pl_added belongs to order added.');
    expect(data).toMatchObject({ order: { amount: '30.00', currency: 'USD' }, link: { id: 'pl_added' } });
    expect(text).not.toContain('the-secret-of-the-added-link');
  });

  it('a refusal says why and ends with 1', async () => {
    const error = await fail(['links', 'reserve', 'paid', '--amount', '1']);
    expect(error).toMatchObject({ code: 'reference_conflict', exit: EXIT.refused });
    expect(error.message).toContain('Use a new reference');
  });
});

describe('cli: orders', () => {
  it('list shows orders in columns, the newest first, and says when there are more', async () => {
    const { text, data } = await run(['orders', 'list', '--limit', '2']);
    expect(text.split('\n')[0]).toMatch(/^REFERENCE +STATE +ASKED +CAPTURED +CREATED +PAID +FLAGS AND MATTERS$/);
    expect(text).toContain('There are more: give --limit N or --all.');
    expect([data.orders.length, data.more]).toEqual([2, true]);
  });

  it('list selects by state and by text, and --all shows all', async () => {
    const held = await run(['orders', 'list', '--state', 'held', '--all']);
    expect(held.data.more).toBe(false);
    expect(new Set(held.data.orders.map(({ state }: { state: string }) => state))).toEqual(new Set(['held']));
    const found = await run(['orders', 'list', '--q', 'pay_paid']);
    expect(found.data.orders.map(({ reference }: { reference: string }) => reference)).toEqual(['paid']);
    const lines = found.text.trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^paid +paid +100\.00 BRL +100\.00 BRL +2\S+Z +2\S+Z +-$/);
  });

  it('show shows one order', async () => {
    const { text, data } = await run(['orders', 'show', 'paid']);
    expect(text).toMatch(/^state +paid$/m);
    expect(text).toMatch(/^payment +pay_paid: completed, 100\.00 BRL$/m);
    expect(data.order).toEqual(await settled().order('paid'));
  });

  it('resolve ends a hold, either way', async () => {
    const reason = ['--reason', 'small change'];
    const environment = environmentOf(settled());
    const accepted = await runSettled(['orders', 'resolve', 'held-1', '--accept', ...reason], environment);
    expect(accepted).toMatchObject({ code: 0, stdout: expect.stringMatching(/^state +paid$/m) });
    const rejected = await runSettled(['orders', 'resolve', 'held-2', '--reject', ...reason, '--json'], environment);
    expect(JSON.parse(rejected.stdout).order).toMatchObject({ state: 'cancelled', flags: ['refund_due'] });
  });

  it.each([
    [['orders', 'resolve', 'paid', '--accept', '--reason', 'x'], 'not_held', EXIT.refused],
    [['orders', 'show', 'nope'], 'not_found', EXIT.notFound],
    [['orders', 'show', '..'], 'invalid_request', EXIT.refused],
    [['orders', 'show', 'paid/timeline'], 'not_found', EXIT.notFound],
    [['why', 'nope'], 'not_found', EXIT.notFound],
    [['events', 'show', '999'], 'not_found', EXIT.notFound],
  ])('%j ends with %s', async (args, code, exit) => {
    expect(await fail(args)).toMatchObject({ code, exit });
  });
});

describe('cli: why', () => {
  it('answers first, then lists what happened, then what happens next', async () => {
    const { text, data } = await run(['why', 'held-3']);
    const [answer = '', ...rest] = text.split('\n');
    expect(answer).toMatch(
      /^Order held-3 \(100\.00 BRL\) is held: 60\.00 BRL came, 40\.00 BRL less than it asks for .*\. A person must decide\.$/,
    );
    expect(data.answer).toBe(answer);
    const order = ['What happened:', 'registration', 'delivery', 'decision', 'What happens next:', '--accept'];
    const places = order.map((words) => rest.findIndex((line) => line.includes(words)));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
  });

  it('quotes a reference for the shell in the commands that it advises', async () => {
    const end = await runSettled(['why', "held 'four'"], environmentOf(settled()));
    expect(end.stdout).toContain(`settled orders resolve 'held '\\''four'\\''' --accept`);
  });
});

describe('cli: events', () => {
  it('list shows events, selected by status and order', async () => {
    const { text, data } = await run(['events', 'list', '--status', 'dead', '--order', 'mismatch']);
    expect(data).toMatchObject({ events: [{ status: 'dead', fault: { code: 'link_mismatch' } }], more: false });
    expect(text).toMatch(/^\d+ +2\S+Z +mismatch +payment_link\.payment_status_changed +dead +link_mismatch/m);
  });

  it('show shows an event and its body, with control characters written out', async () => {
    const body = paymentEvent({ linkId: 'pl_paid', status: 'PENDING', id: 'evt_\u009b31m' });
    expect((await settled().deliver(paid, body)).status).toBe(200);
    const { body: listed } = await settled().api('/v1/events?reference=paid');
    const { text, data } = await run(['events', 'show', listed.events[0].id]);
    expect(text).toMatch(/^timestamp +2\S+Z$/m);
    expect(text).toContain('"id":"evt_\\u009b31m"');
    expect(Buffer.from(data.event.bodyBase64, 'base64').toString()).toBe(body);
  });
});

describe('cli: the state of the installation', () => {
  it('rejections counts what was refused', async () => {
    const { text, data } = await run(['rejections', '--order', 'refused']);
    expect(data.rejections).toMatchObject([{ reference: 'refused', reason: 'signature_wrong', count: 1 }]);
    expect(text).toMatch(
      /^refused +signature_wrong +1 +2\S+Z +2\S+Z\n {2}The signature matches neither this body .* mistakes with them\.$/m,
    );
  });

  it('attention end ends a matter, with a reason', async () => {
    const link = await settled().reserve('noted');
    const event = { linkId: 'pl_noted', id: 'evt_noted', status: 'PENDING' };
    await settled().deliver(link, paymentEvent(event));
    await settled().deliver(link, paymentEvent({ ...event, status: 'NOT_STARTED' }));
    const isIt = ({ kind, reference }: { kind: string; reference: string }) =>
      kind === 'event_conflict' && reference === 'noted';
    const { id } = (await settled().api('/v1/attention')).body.attention.find(isIt);
    const args = ['attention', 'end', id, '--reason', 'both say the same'];
    const end = await runSettled(args, environmentOf(settled()));
    expect(end).toMatchObject({ code: 0, stdout: `Matter ${id} has ended.\n`, stderr: '' });
    expect(await fail(args)).toMatchObject({ code: 'not_found', exit: EXIT.notFound });
  });

  it('rotate-key changes the key, and says what to do with the one before', async () => {
    const app = await startTestApp();
    await app.reserve('order-1');
    const machine = await runSettled(['rotate-key', '--json'], environmentOf(app));
    const { rotation } = JSON.parse(machine.stdout);
    expect(rotation).toMatchObject({ resealed: 1, keyPlace: expect.stringContaining('.key') });
    const human = await runSettled(['rotate-key'], environmentOf(app));
    expect(human).toMatchObject({ code: 0, stderr: '' });
    expect(human.stdout).toMatch(
      /^The secrets key was replaced\. Re-encrypted with the new one: 1 signing secret\.\n.*copy/,
    );
    expect(human.stdout).toMatch(new RegExp(`^key before +${rotation.keyId}$`, 'm'));
  });

  it('stats counts', async () => {
    const { text, data } = await run(['stats']);
    expect(data.stats.orders).toMatchObject({ paid: expect.any(Number) });
    expect(text).toMatch(/^events done +\d+$/m);
    expect(text).toMatch(/^notices being sent +\d+$/m);
    expect(text).toMatch(/^deliveries to known links refused +\d+$/m);
    expect(text).not.toContain('leased');
  });

  it('doctor says what is well and how to fix the rest', async () => {
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    const app = await startTestApp({ environment: { SETTLED_PUBLIC_URL: nowhere } });
    const { text, data } = await say(['doctor'], environmentOf(app), EXIT.refused);
    expect(data.checks).toContainEqual(expect.objectContaining({ name: 'server', status: 'ok' }));
    expect(text).toMatch(/^failing +public address .*SETTLED_PUBLIC_URL/m);
  });

  it('backup writes a copy and says what is not in it', async () => {
    // One after the other: a second backup at the same time is refused.
    const machine = await runSettled(['backup', '--json'], environmentOf(settled()));
    expect(existsSync(JSON.parse(machine.stdout).backup.path)).toBe(true);
    const human = await runSettled(['backup'], environmentOf(settled()));
    expect(human).toMatchObject({ code: 0, stderr: '' });
    expect(human.stdout).toMatch(/settled-\S+\.db was written, \d+ KB\.\n.*secrets key is not in the backup/);
  });
});

describe('cli: a server that cannot be used', () => {
  const nowhere = (listen = '0.0.0.0:9') => ({ ...environmentOf(settled()), SETTLED_OPERATOR_LISTEN: listen });

  it('that does not answer: says at which address, and what to do', async () => {
    const error = await failing(['stats'], nowhere());
    expect(error).toMatchObject({ code: 'server_unreachable', exit: EXIT.unreachable });
    expect(error.message).toContain('http://127.0.0.1:9');
    expect(error.message).toContain('settled serve');
  });

  it('that does not answer: doctor lists it as a failing check', async () => {
    const { text, data } = await say(['doctor'], nowhere('[::]:9'), EXIT.unreachable);
    expect(data.checks).toContainEqual(expect.objectContaining({ name: 'server', status: 'failing' }));
    expect(text).toMatch(/^failing +server +settled cannot be reached at http:\/\/\[::1\]:9/m);
  });

  it('that has another token: says that its own is needed', async () => {
    const environment = { ...environmentOf(settled()), SETTLED_OPERATOR_TOKEN: 'of-quite-another-server' };
    const error = await failing(['stats'], environment);
    expect(error).toMatchObject({ code: 'not_authorized', exit: EXIT.notAllowed });
    expect(error.message).toMatch(/SETTLED_STORE .* Or stop it, if it is the settled of a demo /);
  });

  it('whose token file is not here: names its path, and makes none', async () => {
    const path = join(testFolder(), 'settled.db');
    const { SETTLED_OPERATOR_TOKEN: _, ...others } = environmentOf(settled());
    const error = await failing(['stats'], { ...others, SETTLED_STORE: `sqlite:${path}` });
    expect(error).toMatchObject({ code: 'not_authorized', exit: EXIT.notAllowed });
    expect(error.message).toContain(`${path}.operator-token`);
    expect(existsSync(`${path}.operator-token`)).toBe(false);
  });

  it('with a configuration that cannot be used: lists what is wrong', async () => {
    const error = await failing(['stats'], { SETTLED_CURRENCY: 'x', SETTLED_PUBLIC_URL: 'y' });
    expect(error).toMatchObject({ code: 'configuration_invalid', exit: EXIT.configuration });
    expect(error.message).toMatch(/SETTLED_PUBLIC_URL.*\n.*SETTLED_CURRENCY/);
  });
});

describe('cli: doctor', () => {
  it('ends with 1 if something is failing', async () => {
    const app = await startTestApp({ threads: true });
    const other = new Database(app.storePath);
    other.exec('BEGIN IMMEDIATE');
    await eventually(async () => expect((await app.api('/readyz')).status).toBe(503));
    const { text, data } = await say(['doctor'], environmentOf(app), EXIT.refused);
    other.close();
    expect(data.checks).toContainEqual(expect.objectContaining({ name: 'ready', status: 'failing' }));
    expect(text).toMatch(/^failing +ready +\S+.* is locked/m);
  });
});
