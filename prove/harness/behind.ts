import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../test/support/network.ts';
import { inFolder, say } from './proof.ts';
import { ROOT } from './settled.ts';

/** settled behind a proxy of deploy/. */

type Place = { port: number; folder: string };

export type DeployedProxy = {
  /** Its configuration in deploy/. */
  file: string;
  /** The configuration for this port, and with its own files in this folder. */
  here: (text: string, at: Place) => string;
  command: (file: string) => [string, ...string[]];
};

/**
 * Starts a proxy and does `work` behind it, which returns what it proved in words, and throws what is wrong. Returns
 * whether it is proved; also if the proxy is not installed here. `address`: of settled, in the file; `port`: its own here.
 */
export async function provedBehind(
  name: string,
  { file, here, command }: DeployedProxy,
  { address, port: settledPort }: { address: string; port: number },
  work: (port: number, folder: string) => Promise<string>,
): Promise<boolean> {
  if (spawnSync('sh', ['-c', `command -v ${name}`]).status !== 0) {
    say(`skip ${name}: it is not installed`);
    return true;
  }
  return inFolder('proxy', async (folder) => {
    const port = await freePort();
    const text = here(readFileSync(join(ROOT, 'deploy', file), 'utf8'), { port, folder });
    const path = join(folder, file);
    writeFileSync(path, text.replaceAll(address, `127.0.0.1:${settledPort}`));
    const [program, ...args] = command(path);
    const child = spawn(program, args, { stdio: 'ignore', env: { ...process.env, HOME: folder } });
    try {
      say(`ok   ${name}: ${await work(port, folder)}`);
      return true;
    } catch (error) {
      say(`FAIL ${name}: ${(error as Error).message}`);
      return false;
    } finally {
      child.kill('SIGTERM');
    }
  });
}
