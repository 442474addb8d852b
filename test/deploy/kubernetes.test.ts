import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { readConfig } from '../../src/config/config.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const FOLDER = 'deploy/kubernetes';

/** The fields that are asked for here; `npm run prove:kubernetes` holds all of them against the schemas. */
type Probe = { httpGet: { path: string; port: string } };
type Container = {
  envFrom: { configMapRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  securityContext: Record<string, unknown>;
  volumeMounts: { name: string; mountPath: string; readOnly?: boolean }[];
  lifecycle?: { preStop: { exec: { command: string[] } } };
} & Record<'startupProbe' | 'livenessProbe' | 'readinessProbe', Probe>;
type Pod = {
  containers: Container[];
  securityContext: Record<string, unknown>;
  terminationGracePeriodSeconds: number;
  volumes: ({ name: string } & Record<string, unknown>)[];
  [field: string]: unknown;
};
type Labels = Record<string, string>;
type Manifest = {
  kind: string;
  metadata: { name: string; namespace?: string; labels: Labels };
  data: Record<string, string>;
  // biome-ignore lint/suspicious/noExplicitAny: of each kind another
  spec: any;
};

function manifestsOf(file: string): Manifest[] {
  // As kubectl reads it: 0440 is a mode.
  const documents = parseAllDocuments(read(`${FOLDER}/${file}`), { version: '1.1', uniqueKeys: true });
  expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
  return documents.map((document) => document.toJS());
}

const of = (manifests: readonly Manifest[], kind: string) => manifests.filter((one) => one.kind === kind);
const only = (manifests: readonly Manifest[], kind: string) => {
  const [first, ...more] = of(manifests, kind);
  expect(more).toEqual([]);
  return first as Manifest;
};

const shared = manifestsOf('shared.yaml');
const STORES = [
  ['postgres.yaml', 'Deployment'],
  ['sqlite.yaml', 'StatefulSet'],
] as const;

it('all manifests but the namespace itself are in the namespace', () => {
  const files = readdirSync(join(ROOT, FOLDER)).filter((file) => file.endsWith('.yaml'));
  expect(files.sort()).toEqual(['postgres.yaml', 'shared.yaml', 'sqlite.yaml']);
  const { name, labels } = only(shared, 'Namespace').metadata;
  const elsewhere = files
    .flatMap(manifestsOf)
    .filter(({ kind, metadata }) => kind !== 'Namespace' && metadata.namespace !== name);
  expect(elsewhere).toEqual([]);
  expect(labels['pod-security.kubernetes.io/enforce']).toBe('restricted');
});

describe.each(STORES)('deploy/kubernetes/%s', (file, kind) => {
  const manifests = manifestsOf(file);
  const { spec } = only(manifests, kind);
  const pod = spec.template.spec as Pod;
  const container = pod.containers[0] as Container;
  const labels = spec.template.metadata.labels as Labels;
  const portNamed = (name: string) => container.ports.find((port) => port.name === name)?.containerPort;

  it('is selected by its own labels: by itself, by both services, and by the policy', () => {
    const selectors = [
      spec.selector.matchLabels,
      ...of(shared, 'Service').map((service) => service.spec.selector),
      only(shared, 'NetworkPolicy').spec.podSelector.matchLabels,
      ...of(manifests, 'PodDisruptionBudget').map((budget) => budget.spec.selector.matchLabels),
    ];
    expect(selectors.length).toBeGreaterThan(3);
    expect(selectors.filter((selector) => JSON.stringify(selector) !== JSON.stringify(labels))).toEqual([]);
  });

  it('has settings that there are, and names files of the one secret', () => {
    const [from] = container.envFrom;
    const { data, metadata } = only(manifests, 'ConfigMap');
    expect(from?.configMapRef.name).toBe(metadata.name);
    const given = Object.entries(data).map(([name, text]) => [name, name.endsWith('_FILE') ? '' : text]);
    const files = Object.entries(data).filter(([name]) => name.endsWith('_FILE'));
    const { mountPath } = container.volumeMounts.find(({ name }) => name === 'secrets') ?? { mountPath: '' };
    expect(files.filter(([, path]) => !path.startsWith(`${mountPath}/`))).toEqual([]);
    const values: Record<string, string> = {
      SETTLED_API_KEY: 'key-1',
      SETTLED_SHOP_TOKEN: 'shop-token-of-tests',
      SETTLED_SHOP_SECRET: `whsec_${Buffer.alloc(32, 7).toString('base64')}`,
      SETTLED_STORE: 'postgres://settled:x@db.example.com/settled',
      SETTLED_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
      SETTLED_OPERATOR_TOKEN: 'operator-token-of-tests',
    };
    const read = files.map(([name]) => [name.replace('_FILE', ''), values[name.replace('_FILE', '')]]);
    const config = readConfig(Object.fromEntries([...given, ...read]));
    expect(config).toMatchObject({ publicUrlReaches: true, apiKey: 'key-1' });
    expect(config.store.engine).toBe(file.replace('.yaml', ''));
    expect(only(shared, 'Ingress').spec.rules[0].host).toBe(new URL(config.publicUrl).host);
  });

  it('has the secret made by the commands of the page', () => {
    const page = read('docs/operations.md');
    const { data } = only(manifests, 'ConfigMap');
    const needed = Object.values(data).flatMap((text) => /^\/run\/secrets\/settled\/(.*)$/.exec(text)?.[1] ?? []);
    const [, made = ''] = /create secret generic settled .*?--from-file=(\S+)/s.exec(page) ?? [];
    const written = [...page.matchAll(new RegExp(`${made}/([\\w-]+)`, 'g'))].map(([, name]) => name);
    expect(needed.length).toBeGreaterThan(2);
    expect(needed.filter((name) => !written.includes(name))).toEqual([]);
    expect(pod.volumes.find(({ name }) => name === 'secrets')?.secret).toMatchObject({ secretName: 'settled' });
  });

  it('is probed at the private listener, which a flood of the public one does not reach', () => {
    const listen = (name: string) => Number(/:(\d+)$/.exec(imageSetting(name))?.[1]);
    expect([portNamed('hooks'), portNamed('private')]).toEqual([
      listen('SETTLED_HOOKS_LISTEN'),
      listen('SETTLED_OPERATOR_LISTEN'),
    ]);
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
    expect(probes.map(({ httpGet }) => [httpGet.path, httpGet.port])).toEqual([
      ['/livez', 'private'],
      ['/livez', 'private'],
      ['/readyz', 'private'],
    ]);
  });

  it('keeps the rules of Pod Security’s level restricted', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: Number(/^USER (\d+):/m.exec(read('Dockerfile').split('\nFROM ').at(-1) as string)?.[1]),
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const fields = ['hostNetwork', 'hostPID', 'hostIPC', 'initContainers', 'ephemeralContainers'];
    expect(fields.filter((field) => field in pod)).toEqual([]);
    expect(pod.containers).toHaveLength(1);
    const kinds = pod.volumes.flatMap(({ name: _, ...source }) => Object.keys(source));
    expect(kinds.filter((one) => !['secret', 'emptyDir'].includes(one))).toEqual([]);
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  });

  it('has the time in which it stops', () => {
    const waitsSeconds = Number(container.lifecycle?.preStop.exec.command[1] ?? 0);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(waitsSeconds + 10);
  });
});

it('the ingress shows deliveries and returning customers, and nothing else', () => {
  const { rules } = only(shared, 'Ingress').spec;
  const paths = rules[0].http.paths as { path: string; backend: { service: { name: string } } }[];
  expect(paths.map(({ path, backend }) => [path, backend.service.name])).toEqual([
    ['/hooks', 'settled-hooks'],
    ['/return', 'settled-hooks'],
  ]);
  // A Service of this name would put variables into each pod that look like settings.
  expect(of(shared, 'Service').map(({ metadata }) => metadata.name)).toEqual(['settled-hooks', 'settled-private']);
});

it('SQLite has one pod, and a volume that outlives it', () => {
  const { spec } = only(manifestsOf('sqlite.yaml'), 'StatefulSet');
  const [claim] = spec.volumeClaimTemplates;
  const { data } = only(manifestsOf('sqlite.yaml'), 'ConfigMap');
  expect([spec.replicas, claim.spec.accessModes]).toEqual([1, ['ReadWriteOnce']]);
  const { mountPath } = spec.template.spec.containers[0].volumeMounts.find(
    ({ name }: { name: string }) => name === claim.metadata.name,
  );
  expect(data.SETTLED_STORE).toBe(`sqlite:${mountPath}/settled.db`);
});

it('PostgreSQL has two pods, of which one is always there', () => {
  const manifests = manifestsOf('postgres.yaml');
  const { replicas, strategy } = only(manifests, 'Deployment').spec;
  expect(replicas).toBe(2);
  expect(strategy.rollingUpdate.maxUnavailable).toBe(0);
  expect(only(manifests, 'PodDisruptionBudget').spec.maxUnavailable).toBe(1);
});

function imageSetting(name: string): string {
  return new RegExp(`${name}=(\\S+)`).exec(read('Dockerfile'))?.[1] ?? '';
}
