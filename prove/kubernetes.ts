import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseAllDocuments } from 'yaml';
import { command, inFolder, say } from './harness/proof.ts';
import { ROOT } from './harness/settled.ts';

/**
 * `npm run prove:kubernetes`: every manifest of deploy/kubernetes is what Kubernetes knows. The types of kubernetes-models
 * find a field that there is not, its schemas a value that cannot be. It is installed into a folder of its own, by the
 * lockfile in prove/kubernetes, because only this proof needs its 26 MB.
 */

const MANIFESTS = join(ROOT, 'deploy/kubernetes');
const LOCKED = ['package.json', 'package-lock.json'];

type Manifest = { file: string; apiVersion: string; kind: string; object: object };

await command('prove:kubernetes', {}, () =>
  inFolder('kubernetes', async (folder) => {
    for (const name of LOCKED) cpSync(join(ROOT, 'prove/kubernetes', name), join(folder, name));
    run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent'], folder);
    const manifests = readManifests();
    let faults = 0;
    for (const manifest of manifests) faults += await report(manifest, folder);
    faults += reportTypes(manifests, folder);
    say(`${manifests.length} manifests, ${faults === 0 ? 'no fault' : `${faults} with faults`}`);
    return faults === 0 ? 0 : 1;
  }),
);

function readManifests(): Manifest[] {
  const files = readdirSync(MANIFESTS).filter((file) => file.endsWith('.yaml'));
  return files.flatMap((file) =>
    // As kubectl reads it: 0440 is a mode.
    parseAllDocuments(readFileSync(join(MANIFESTS, file), 'utf8'), { version: '1.1' }).map((document) => {
      const [error] = document.errors;
      if (error !== undefined) throw new Error(`${file}: ${error.message}`);
      const object = document.toJS();
      return { file, apiVersion: object.apiVersion, kind: object.kind, object };
    }),
  );
}

/** Prints whether a manifest keeps the schema of its kind. Returns 1 if it does not. */
async function report({ file, apiVersion, kind, object }: Manifest, folder: string): Promise<number> {
  const path = join(folder, 'node_modules/kubernetes-models', apiVersion, 'index.js');
  const { [kind]: Model } = await import(pathToFileURL(path).href);
  try {
    new Model(object).validate();
    say(`ok      ${file} ${kind}`);
    return 0;
  } catch (error) {
    say(`faulty  ${file} ${kind}: ${(error as Error).message}`);
    return 1;
  }
}

/** Prints what the types do not know: `tsc` names unknown fields of literals, at any depth. Returns 1 for any. */
function reportTypes(manifests: readonly Manifest[], folder: string): number {
  const lines = manifests.flatMap(({ file, apiVersion, kind, object }, at) => [
    `import type { I${kind} as Kind${at} } from 'kubernetes-models/${apiVersion}';`,
    `// ${file}`,
    `export const manifest${at}: Kind${at} = ${JSON.stringify(object, null, 2)};`,
  ]);
  writeFileSync(join(folder, 'manifests.ts'), `${lines.join('\n')}\n`);
  const options = { strict: true, noEmit: true, module: 'nodenext', skipLibCheck: true };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['manifests.ts'] }));
  const { status, stdout } = spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder], { encoding: 'utf8' });
  if (status !== 0) say(`faulty  by the types:\n${stdout}`);
  else say('ok      by the types');
  return status === 0 ? 0 : 1;
}

function run(command: string, args: readonly string[], cwd: string): void {
  const { status } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${args[0]} failed in ${cwd}`);
}
