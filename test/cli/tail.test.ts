import { describe, expect, it } from 'vitest';
import type { RunningProcess } from '../../prove/harness/program.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { type ReservedLink, startTestApp, type TestApp } from '../support/app.ts';
import { paymentEvent, signedHeaders } from '../support/deliveries.ts';
import { serveHere } from '../support/http.ts';
import { freePort } from '../support/network.ts';
import { spawnSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { environmentOf, expectNothingToObey, failing } from './settled.ts';

const settled = sharedApp();

/** Starts `settled tail`; resolves when it is connected. */
async function tail(app: TestApp, ...args: string[]): Promise<RunningProcess> {
  const running = spawnSettled(['tail', ...args], environmentOf(app));
  await running.line(args.includes('--json') ? /"what":"alive"/ : /^TIME/);
  return running;
}

async function pay(reference: string): Promise<ReservedLink> {
  const link = await settled().reserve(reference);
  const body = paymentEvent({ linkId: `pl_${reference}`, amount: '100.00' });
  await settled().deliver(link, body, signedHeaders('another-secret-altogether', body));
  await settled().deliver(link, body);
  return link;
}

describe('cli: tail', () => {
  it('shows what happens in columns, until Ctrl-C', async () => {
    const running = await tail(settled());
    await pay('order-of-the-tail');
    await running.line(/settled/);
    running.child.kill('SIGINT');
    const { code, stdout, stderr } = await running.finished;
    expect([code, stderr]).toEqual([EXIT.ok, '']);
    const [heading = '', ...rows] = stdout.trimEnd().split('\n');
    const columns = ['WHAT', 'ORDER'].map((name) => heading.indexOf(name));
    expect(rows.map((row) => row.slice(columns[0], columns[1]).trim())).toEqual(['rejected', 'accepted', 'settled']);
    const [rejected, accepted, paid] = rows.map((row) => row.replace(/^2\S+Z +/, '').replace(/ +/g, ' '));
    expect(rejected).toBe('rejected order-of-the-tail reason=signature_wrong');
    expect(accepted).toMatch(
      /^accepted order-of-the-tail event=\d+ type=payment_link\.payment_status_changed signedAs=\S+$/,
    );
    expect(paid).toMatch(/^settled order-of-the-tail event=\d+ outcome=applied rule=paid state=paid$/);
  });

  it('shows one order as lines of JSON, and ends when its reader is gone', async () => {
    const running = await tail(settled(), '--order', 'one', '--json');
    await pay('other');
    const link = await pay('one');
    await running.line(/"what":"settled"/);
    const lines = running
      .stdout()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map(({ what, reference }) => [what, reference])).toEqual([
      ['alive', null],
      ['rejected', 'one'],
      ['accepted', 'one'],
      ['settled', 'one'],
    ]);
    await settled().deliver(link, '{"type":"\\u009b31m"}');
    await running.line(/31m/);
    expectNothingToObey(running.stdout());
    running.child.stdout?.destroy();
    await settled().deliver(link, 'not JSON');
    expect(await running.finished).toMatchObject({ code: EXIT.ok, stderr: '' });
  });

  it('ends with 69 when settled stops, and says what to do', async () => {
    const app = await startTestApp();
    const running = await tail(app);
    void app.app.stop();
    const { code, stderr } = await running.finished;
    expect(code).toBe(EXIT.unreachable);
    expect(stderr).toMatch(/^settled: settled at http\S+ is stopping\. .*give the command again/);
  });

  it('ends with 69 when the connection breaks', async () => {
    const apiUrl = await serveHere((_request, response) => {
      response
        .setHeader('x-request-id', '1')
        .write('{"at":"2030-01-31T12:00:00.000Z","what":"alive","reference":null}\n', () => {
          response.destroy();
        });
    });
    const { finished } = spawnSettled(['tail', '--json'], environmentOf({ ...settled(), apiUrl }));
    const { code, stderr } = await finished;
    expect(code).toBe(EXIT.unreachable);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: 'server_unreachable',
      message: expect.stringContaining('broke off'),
    });
  });

  it('ends as every command does if there is no server, or the server refuses', async () => {
    const nowhere = { ...environmentOf(settled()), SETTLED_OPERATOR_LISTEN: `127.0.0.1:${await freePort()}` };
    expect(await failing(['tail'], nowhere)).toMatchObject({ exit: EXIT.unreachable });
    const refused = await failing(['tail', '--order', 'a\u0001'], environmentOf(settled()));
    expect(refused).toMatchObject({ code: 'invalid_request', exit: EXIT.refused });
  });
});
