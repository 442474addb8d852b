import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EXIT } from '../../src/cli/exit.ts';
import { testFolder } from '../support/app.ts';
import { freePort } from '../support/network.ts';
import { fatalLine, spawnSettled } from '../support/process.ts';

/** A folder with this `.env`. */
function folderWith(...lines: string[]): string {
  const folder = testFolder();
  writeFileSync(join(folder, '.env'), `${lines.join('\n')}\n`);
  return folder;
}

describe('cli: a file .env in the working folder', () => {
  it('gives the server and the commands the settings that the environment lacks, and both say so', async () => {
    const operatorPort = await freePort();
    const cwd = folderWith(
      '# as it is copied from .env.example',
      'export SETTLED_STORE="sqlite:./here.db"',
      'SETTLED_HOOKS_LISTEN=127.0.0.1:1',
      `SETTLED_OPERATOR_LISTEN=127.0.0.1:${operatorPort}`,
      'SETTLED_API_URL=',
      'PATH=/nowhere',
    );
    const serving = spawnSettled(['serve'], { SETTLED_HOOKS_LISTEN: '127.0.0.1:0' }, { cwd });
    const told = JSON.parse(await serving.line(/were taken from a file/));
    const names = ['SETTLED_OPERATOR_LISTEN', 'SETTLED_STORE'];
    expect(told).toMatchObject({ path: join(cwd, '.env'), names });
    expect(JSON.parse(await serving.line(/is serving/))).toMatchObject({
      store: expect.stringContaining('here.db'),
      operator: { port: operatorPort },
    });
    const { stdout } = await spawnSettled(['doctor'], {}, { cwd }).finished;
    expect(stdout).toContain(`${join(cwd, '.env')} gave SETTLED_HOOKS_LISTEN, SETTLED_OPERATOR_LISTEN, SETTLED_STORE`);
  });

  it('is named with what is wrong', async () => {
    const cwd = folderWith('SETTLED_TOLERANCE_SECONDS=0', 'SETTLED_STROE=x');
    const end = await spawnSettled(['serve'], {}, { cwd }).finished;
    expect(end.code).toBe(EXIT.configuration);
    const { message } = fatalLine(end).fault;
    expect(message).toContain('SETTLED_STROE is not a setting of this version. Did you mean SETTLED_STORE?');
    expect(message).toContain(`${join(cwd, '.env')} gave: SETTLED_STROE, SETTLED_TOLERANCE_SECONDS`);
  });

  it('may begin with a byte order mark, and is refused if it is no UTF-8 text', async () => {
    const cwd = testFolder();
    const end = async (bytes: Buffer) => {
      writeFileSync(join(cwd, '.env'), bytes);
      const { code, stdout, stderr } = await spawnSettled(['config'], {}, { cwd }).finished;
      return [code, stdout + stderr] as const;
    };
    const text = 'SETTLED_STROE=x\n';
    const named = [EXIT.configuration, expect.stringContaining('SETTLED_STROE is not a setting')];
    expect(await end(Buffer.from(`\ufeff${text}`))).toEqual(named);
    const refused = [EXIT.configuration, expect.stringContaining('not UTF-8 text')];
    for (const bytes of [
      Buffer.from(`\ufeff${text}`, 'utf16le'),
      Buffer.from(text, 'utf16le'),
      Buffer.from('A=\xe9\n', 'latin1'),
    ]) {
      expect(await end(bytes)).toEqual(refused);
    }
  });

  it('gives nothing if the environment has the name, though empty', async () => {
    const cwd = folderWith('SETTLED_TOLERANCE_SECONDS=0');
    const environment = { SETTLED_TOLERANCE_SECONDS: '', SETTLED_OPERATOR_LISTEN: '127.0.0.1:1' };
    const { code, stderr } = await spawnSettled(['stats'], environment, { cwd }).finished;
    expect([code, stderr]).toEqual([EXIT.unreachable, expect.stringContaining('cannot be reached')]);
  });

  it('may be a folder of another program', async () => {
    const cwd = testFolder();
    mkdirSync(join(cwd, '.env'));
    const { code } = await spawnSettled(['stats'], { SETTLED_OPERATOR_LISTEN: '127.0.0.1:1' }, { cwd }).finished;
    expect(code).toBe(EXIT.unreachable);
  });
});
