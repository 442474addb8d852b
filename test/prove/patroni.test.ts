import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { etcdApi } from '../../prove/failover/programs.ts';

const PROOF = fileURLToPath(new URL('../../prove/failover.ts', import.meta.url));

describe('the proof behind Patroni', () => {
  it('says what to install if its programs are missing, and proves nothing', () => {
    const { status, stdout } = spawnSync(process.execPath, [PROOF, '--patroni'], {
      encoding: 'utf8',
      env: { PATH: '/nowhere' },
    });
    expect(stdout).toMatch(/^--patroni needs patroni, etcd.* apt-get install patroni etcd-server haproxy postgresql/);
    expect(status).toBe(1);
  });

  it.each([
    ['patroni 2.1.7', 'etcd'],
    ['patroni 3.0.2', 'etcd'],
    ['patroni 3.0.3', 'etcd3'],
    ['patroni 3.1.0', 'etcd3'],
    ['patroni 4.0.0', 'etcd3'],
  ])('has %s keep its keys by the API %s, by which it takes none of another leader', (version, api) => {
    const folder = mkdtempSync(join(tmpdir(), 'settled-patroni-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const patroni = join(folder, 'patroni');
    writeFileSync(patroni, `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
    expect(etcdApi({ patroni, etcd: '', haproxy: '', postgres: '' })).toBe(api);
  });
});
