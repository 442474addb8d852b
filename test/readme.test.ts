import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { testFolder } from './support/app.ts';
import { spawnSandbox, spawnSettled } from './support/process.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

describe('the README', () => {
  it('names only commands and files that are there', () => {
    const links = [...README.matchAll(/\]\(([^)#]+)\)/g)].map(([, target]) => target as string);
    expect(links.filter((target) => !target.startsWith('http') && !existsSync(join(ROOT, target)))).toEqual(
      [],
    );
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(['start', 'test', 'settled', 'sandbox']));
  });

  it('has every local link of the other documents lead somewhere', () => {
    const documents = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.md'))
      .map((file) => join(ROOT, 'docs', file));
    const broken = documents.flatMap((document) =>
      [...readFileSync(document, 'utf8').matchAll(/\]\(([^)#]+)[^)]*\)/g)]
        .map(([, target]) => target as string)
        .filter((target) => !/^[a-z]+:/.test(target) && !existsSync(join(dirname(document), target)))
        .map((target) => `${document} -> ${target}`),
    );
    expect(broken).toEqual([]);
  });

  it('shows commands that turn an order paid when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash', 'curl', 'openssl']);
    const { folder, hooks, operator, environment } = await serve();
    const block = /## See an order paid[\s\S]*?```sh\n([\s\S]*?)```/.exec(README)?.[1] as string;
    const script = block
      .replaceAll('http://127.0.0.1:8788', `http://127.0.0.1:${operator.port}`)
      .replace('curl -i "$WEBHOOK_URL"', `curl -i "\${WEBHOOK_URL/8787/${hooks.port}}"`)
      .replaceAll('data/settled.db', `${folder}/data/settled.db`)
      .replace('npm run -s settled --', `'${process.execPath}' bin/settled.mjs`);
    const output = paste(script, environment);
    expect(output).toContain('HTTP/1.1 200 OK');
    expect(output).toContain('{"received":true,"duplicate":false}');
    expect(output).toContain('"state":"paid"');
    expect(output).toMatch(/Order order-1001 .*is paid/);
  });

  it('shows commands that pay an order without the service when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash', 'curl']);
    const { folder, hooks, operator, environment } = await serve();
    const section = /## Try it without the service[\s\S]*?\n## /.exec(README)?.[0] as string;
    const [start = '', rest = ''] = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block]) => block);
    const [, options = ''] = /^npm run -s sandbox -- (.*)\n$/.exec(start) ?? [];
    const sandbox = spawnSandbox([...options.split(' '), '--listen', '127.0.0.1:0', '--json']);
    const { url } = JSON.parse(await sandbox.line(/"url"/));
    const launcher = `'${process.execPath}' bin/settled.mjs`;
    const script = rest
      .replaceAll('http://127.0.0.1:8788', `http://127.0.0.1:${operator.port}`)
      .replaceAll('http://127.0.0.1:8790', url)
      .replace('"$WEBHOOK_URL"', `"\${WEBHOOK_URL/8787/${hooks.port}}"`)
      .replaceAll('data/settled.db', `${folder}/data/settled.db`)
      .replace('npm run -s sandbox --', `${launcher} sandbox`)
      .replace('npm run -s settled --', launcher);
    const output = paste(script, environment);
    expect(output).toContain(`"url":"${url}/pay/`);
    expect(output).toMatch(/payment_status_changed COMPLETED +acknowledged +1 +1 +- +200/);
    expect(output).toMatch(/Order order-2001 .*is paid/);
  });
});

describe('the README of the sandbox', () => {
  it('shows commands that play a scenario at settled when they are pasted', async ({ skip }) => {
    skipWithout(skip, ['bash']);
    const { hooks, environment } = await serve();
    const readme = readFileSync(join(ROOT, 'sandbox/README.md'), 'utf8');
    const block = /\n## Scenarios[\s\S]*?```sh\n([\s\S]*?)```/.exec(readme)?.[1] as string;
    const launcher = `'${process.execPath}' bin/settled.mjs`;
    const script = block
      .replace('--webhook-url "$WEBHOOK_URL"', `--webhook-url "\${WEBHOOK_URL/8787/${hooks.port}}"`)
      .replaceAll('npm run -s settled --', launcher)
      .replace('npm run -s sandbox --', `${launcher} sandbox`);
    const output = paste(script, environment);
    expect(output).toMatch(/^PASSED$/m);
    expect(output).toMatch(/Order play-1 .*is paid/);
  });
});

function skipWithout(skip: (condition: boolean, note: string) => void, tools: readonly string[]): void {
  for (const tool of tools) {
    const missing = spawnSync(tool, ['--version']).error !== undefined && spawnSync(tool, ['version']).error;
    skip(Boolean(missing), `${tool} is not installed, and the README's commands need it`);
  }
}

/** settled on free ports, and the environment in which its commands find it. */
async function serve() {
  const folder = testFolder();
  const environment = {
    SETTLED_STORE: `sqlite:${folder}/data/settled.db`,
    SETTLED_HOOKS_LISTEN: '127.0.0.1:0',
    SETTLED_OPERATOR_LISTEN: '127.0.0.1:0',
  };
  const served = spawnSettled(['serve'], environment);
  const { hooks, operator } = JSON.parse(await served.line(/settled is serving/));
  const reachable = { ...environment, SETTLED_OPERATOR_LISTEN: `127.0.0.1:${operator.port}` };
  return { folder, hooks, operator, environment: reachable };
}

/** What the commands print; throws where one fails. */
function paste(script: string, environment: Record<string, string>): string {
  return execFileSync('bash', ['-euc', script], {
    cwd: ROOT,
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
