import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { request, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { COMMANDS, run } from '../../src/cli/commands.ts';
import { EXIT } from '../../src/cli/exit.ts';
import { PIPE } from '../../src/terminal/screen.ts';
import { OPERATOR_TOKEN, testFolder } from '../support/app.ts';
import { serveHere } from '../support/http.ts';
import { listen } from '../support/network.ts';
import { runSettled, spawnSettled } from '../support/process.ts';
import { sharedApp } from '../support/shared.ts';
import { eventually } from '../support/timing.ts';
import { environmentOf, expectNothingToObey, failing, say } from './settled.ts';

const settled = sharedApp();

function tokenFile(token = OPERATOR_TOKEN): string {
  const file = join(testFolder(), 'token');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  return file;
}

/** Environment of a machine on which settings say nothing of the server, and one that must not be read. */
const OTHER_MACHINE = { SETTLED_OPERATOR_TOKEN: 'the-token-of-this-machine', SETTLED_OPERATOR_LISTEN: '127.0.0.1:9' };

/** A proxy with TLS before settled, under a path; what it was asked with. */
async function proxyWithTls() {
  const folder = testFolder();
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = 'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost';
  const names = ['-addext', 'subjectAltName=DNS:localhost', '-keyout', key, '-out', cert];
  execFileSync('openssl', [...made.split(' '), ...names], { stdio: 'ignore' });
  const tokens: (string | undefined)[] = [];
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (asked, answer) => {
    tokens.push(asked.headers.authorization);
    const path = asked.url?.startsWith('/ops/') ? asked.url.slice('/ops'.length) : '/nowhere';
    const { host: _, ...headers } = asked.headers;
    const onward = request(settled().apiUrl + path, { method: asked.method ?? 'GET', headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(answer);
    });
    asked.pipe(onward);
  });
  const { port, close } = await listen(server);
  onTestFinished(close);
  return { url: `https://localhost:${port}/ops`, cert, tokens };
}

/** The address of a server that answers every request alike, and at first like settled. */
function answering(answer: (response: ServerResponse) => void): Promise<string> {
  return serveHere((_, response) => answer(response.setHeader('x-request-id', '1')));
}

describe('cli: a server on another machine', () => {
  it('is asked with --at and --token-file, or with the environment, never with the settings of this machine', async () => {
    await settled().reserve('far-away');
    const given = ['--at', settled().apiUrl, '--token-file', tokenFile()];
    const { data } = await say(['orders', 'show', 'far-away', ...given], OTHER_MACHINE);
    expect(data.order.reference).toBe('far-away');
    const around = { ...OTHER_MACHINE, SETTLED_AT: settled().apiUrl, SETTLED_AT_TOKEN_FILE: tokenFile() };
    expect((await say(['orders', 'show', 'far-away'], around)).data).toEqual(data);
    const checks = (await say(['doctor'], around, 1)).data.checks.map(({ name }: { name: string }) => name);
    expect(checks).toContain('ready');
    expect(checks).not.toContain('configuration');
  });

  it.each([
    ...COMMANDS.flatMap(({ name }) => (name.endsWith(' list') ? [name] : [])),
    'attention',
    'audit',
    'bulk replay --status dead --dry-run',
    'rejections',
  ])('%s --at URL selects what it selects without', async (name) => {
    const [words, given] = [name.split(' '), ['--at', settled().apiUrl, '--token-file', tokenFile()]];
    // On a busy machine attention says for a moment that the event loop is blocked.
    await eventually(async () => {
      const { data } = await say([...words, ...given, '--allow-http'], OTHER_MACHINE);
      expect(data).toEqual((await say(words, environmentOf(settled()))).data);
    });
  });

  it('is asked through TLS and below a path, if its certificate is trusted', async () => {
    const proxy = await proxyWithTls();
    const args = ['stats', '--at', proxy.url, '--token-file', tokenFile(), '--json'];
    const distrusting = await spawnSettled(args, {}).finished;
    expect(distrusting.code).toBe(EXIT.unreachable);
    expect(JSON.parse(distrusting.stderr).error.message).toMatch(/SELF_SIGNED_CERT.*NODE_EXTRA_CA_CERTS/);
    expect(proxy.tokens).toEqual([]);
    const trusting = await spawnSettled(args, { NODE_EXTRA_CA_CERTS: proxy.cert }).finished;
    expect(trusting).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(trusting.stdout).stats.orders).toBeDefined();
    expect(proxy.tokens).toEqual([`Bearer ${OPERATOR_TOKEN}`]);
  });

  it('without a token of its own is not asked with that of this machine', async () => {
    const error = await failing(['stats', '--at', settled().apiUrl], {
      ...OTHER_MACHINE,
      SETTLED_OPERATOR_TOKEN: OPERATOR_TOKEN,
    });
    expect(error).toMatchObject({ code: 'not_authorized', exit: EXIT.notAllowed });
    expect(error.message).toContain('give --token-file FILE, or set SETTLED_AT_TOKEN_FILE');
  });

  it('that does not know the token: says where to give one, and never shows it', async () => {
    const secret = 'canary-of-another-server';
    const error = await failing(['stats', '--at', settled().apiUrl, '--token-file', tokenFile(secret)]);
    expect(error).toMatchObject({ code: 'not_authorized', exit: EXIT.notAllowed });
    expect(error.message).toContain('--token-file, or SETTLED_AT_TOKEN_FILE');
    expect(error.message).not.toContain(secret);
    const hooks = await failing(['stats', '--at', settled().hooksUrl, '--token-file', tokenFile(secret)]);
    expect(hooks.message).toMatch(/^settled cannot be reached .*public listener.* SETTLED_OPERATOR_LISTEN, /);
  });

  it('is not asked over plain http, unless that is permitted', async () => {
    const args = ['stats', '--token-file', tokenFile(), '--at'];
    for (const url of ['http://192.0.2.1:8788', 'http://settled.example.com', 'http://127.0.0.1.example.com']) {
      const error = await failing([...args, url]);
      expect(error).toMatchObject({ code: 'usage', exit: EXIT.usage });
      expect(error.message).toMatch(/^--at is http to another machine, .*ssh -L .*--allow-http/);
    }
    const around = { SETTLED_AT: 'http://192.0.2.1:8788', SETTLED_AT_TOKEN_FILE: tokenFile() };
    expect(await failing(['stats'], around)).toMatchObject({ code: 'configuration_invalid', exit: 78 });
    // Nothing of this name is found, so that nothing is sent anywhere.
    const permitted = await failing(['stats', '--allow-http', ...args.slice(1), 'http://settled.invalid:1']);
    expect(permitted).toMatchObject({ code: 'server_unreachable', exit: EXIT.unreachable });
    const byEnvironment = { ...around, SETTLED_AT: 'http://settled.invalid:1', SETTLED_AT_ALLOW_HTTP: 'true' };
    expect(await failing(['stats'], byEnvironment)).toMatchObject({ code: 'server_unreachable' });
  });

  it.each([
    ['canary-token-in-the-wrong-place', /^--at is not an address\./],
    ['https://settled:canary@settled.example.com', /^--at must be an origin and perhaps a path/],
    ['https://settled.example.com/?token=canary', /^--at must be an origin and perhaps a path/],
  ])('is not asked at %s, which is not repeated', async (at, says) => {
    const error = await failing(['stats', '--token-file', tokenFile(), '--at', at]);
    expect(error.message).toMatch(says);
    expect(error.message).not.toContain('canary');
  });

  it('does not show a token that is given in place of its file', async () => {
    const error = await failing(['stats', '--at', settled().apiUrl, '--token-file', 'canary-token-of-ana']);
    expect(error).toMatchObject({
      code: 'not_authorized',
      message: expect.stringMatching(/^There is no token for http\S+: the token file does not exist\.$/),
    });
    const empty = await failing(['stats', '--at', settled().apiUrl, '--token-file', tokenFile('two words')]);
    expect(empty.message).toMatch(/^There is no token in \/.*write the token alone into it/);
  });

  it('is not taken from the .env of a folder, which a stranger may have written', async () => {
    const cwd = testFolder();
    const env = ['SETTLED_AT=https://settled.invalid', 'SETTLED_OPERATOR_LISTEN=127.0.0.1:9'];
    writeFileSync(join(cwd, '.env'), env.join('\n'));
    const { stdout } = await spawnSettled(['doctor'], { SETTLED_AT_TOKEN_FILE: tokenFile() }, { cwd }).finished;
    expect(stdout).toContain('settled cannot be reached at http://127.0.0.1:9');
    expect(stdout).toMatch(/\.env gave SETTLED_OPERATOR_LISTEN$/m);
  });

  it.each(['192.0.2.255:9', '[2001:db8::1]:9'])('is not asked at %s because a .env says so', async (listen) => {
    const cwd = testFolder();
    writeFileSync(join(cwd, '.env'), `SETTLED_OPERATOR_LISTEN=${listen}\n`);
    const environment = { SETTLED_OPERATOR_TOKEN: 'the-token-of-this-machine' };
    const { stderr } = await spawnSettled(['stats', '--json'], environment, { cwd }).finished;
    const { code, message } = JSON.parse(stderr).error;
    expect(code).toBe('server_unreachable');
    expect(message).toMatch(/^No token was sent to http:\/\/.*:9, which is another machine, .*\.env.* --at\.$/);
  });

  it('cannot make the terminal do anything by what it answers', async () => {
    const name = 'ana\u001b]0;title\u0007\u001b[2J\u202e';
    const entries = [{ at: name, kind: name, summary: name, details: [name] }];
    const what = { at: name, what: name, reference: name, detail: name, answer: name, entries, next: [name] };
    const at = await answering((answer) => answer.end(`${JSON.stringify({ session: { name }, ...what })}\n`));
    const { stdout } = await runSettled(['sessions', 'end', '1', '--at', at, '--token-file', tokenFile()]);
    expect(stdout).toBe('Session 1 of ana\\u001b]0;title\\u0007\\u001b[2J\\u202e has ended.\n');
    const told = await runSettled(['tail', '--at', at, '--token-file', tokenFile()]);
    expectNothingToObey(told.stdout);
    expectNothingToObey((await runSettled(['why', 'o', '--at', at, '--token-file', tokenFile()])).stdout);
  });

  it('cannot make the terminal do anything by a CSV file, which is as it came in a pipe', async () => {
    const csv = 'reference\r\n\u001b]0;title\u0007\r\n';
    const at = await answering((answer) => answer.end(csv));
    const args = ['orders', 'list', '--csv', '--at', at, '--token-file', tokenFile()];
    expect((await runSettled(args)).stdout).toBe(csv);
    const shown: string[] = [];
    const print = async (text: string) => shown.push(text) > 0;
    await run(args, { screen: { ...PIPE, columns: 80 }, environment: {}, print, printError: () => {} });
    expect(shown).toEqual(['reference\n', '\\u001b]0;title\\u0007\n']);
  });

  const OTHERS_JSON = Buffer.from('{"status": "ok", "detail": "Hello"}');

  it.each([
    ['stats', 'an answer that never ends', 200, Array(6).fill(Buffer.alloc(13 * 1024 * 1024, ' '))],
    ['tail', 'a line that never ends', 200, Array(6).fill(Buffer.alloc(1024 * 1024, ' '))],
    ['tail', 'lines that are no JSON', 200, Array(6).fill(Buffer.from('<h1>Sign in</h1>\n'))],
    ['stats', 'the JSON of another program', 200, [OTHERS_JSON]],
    ['tail', 'the JSON of another program', 200, [OTHERS_JSON]],
    ['stats', 'the JSON of another program', 401, [OTHERS_JSON]],
  ])('of which %s gets %s with %i is not settled', async (command, _, status, parts) => {
    const isOther = parts[0] === OTHERS_JSON;
    const at = await answering((answer) => {
      if (isOther) answer.removeHeader('x-request-id');
      answer.writeHead(status);
      for (const part of parts) answer.write(part);
      if (isOther) answer.end();
    });
    const error = await failing([command, '--at', at, '--token-file', tokenFile()]);
    expect(error).toMatchObject({ code: 'server_unreachable', exit: EXIT.unreachable });
    expect(error.message).toContain(`what answers there is not settled (status ${status})`);
  });

  it('cannot be named to a command that works on this machine', async () => {
    expect(await failing(['migrate', '--at', 'https://x.example.com'])).toMatchObject({
      code: 'usage',
      message: expect.stringContaining('`settled migrate` has no option --at.'),
    });
  });
});
