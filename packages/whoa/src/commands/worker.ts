import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
import { OPEN_OPTIONS } from '../agent/agent-options.ts';
import { agentNames, openAgents } from '../agent/open-agents.ts';
import { type Command, EXIT, readArguments, readCount, readDuration, UsageError, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import type { System } from '../system.ts';
import { openSharedStore } from '../tasks/local-tasks.ts';
import { notePauses } from '../tasks/pauses.ts';
import { waitForEnd } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';
import { watchLoop } from '../worker/loop-watchdog.ts';
import { openEngine } from '../worker/open-engine.ts';
import { healthRoutes, metricsRoutes, serveRoutes } from '../worker/serve-routes.ts';
import { startWebhooks } from '../worker/start-webhooks.ts';
import { startWorker, type Worker } from '../worker/start-worker.ts';

const help = `whoa worker [options]

Takes tasks from your configuration's store and runs them with your configuration's agents, in this folder, until you stop it. It takes
over the tasks of crashed workers. Calls that no rule decides wait for an approval through the store.
With an engine in your configuration, such as BullMQ, the engine decides when a task starts.

  --agent NAME        only tasks for this agent; can be repeated. Defaults to all agents of the configuration
  --concurrency N     how many tasks run at the same time; defaults to 16
  --model NAME        as for 'whoa run'
  --sandbox KIND      what commands may access: workspace, read-only or none
  --yes               allow calls that no rule matches; needs --sandbox
  --health-port PORT  serve /healthz (the process works) and /readyz (it takes tasks, and the store and the engine respond)
  --host HOST         the address of the health port; defaults to 127.0.0.1
  --metrics-port PORT serve /metrics for Prometheus, to everyone who can reach the port
  --metrics-host HOST the address of the metrics port; defaults to 127.0.0.1, which other machines cannot reach
  --watchdog DURATION a second process kills the worker if its event loop is blocked for this long; defaults to 10s, 0 disables it
  --config FILE       the configuration file
  --json              print one JSON object per line, when a task starts and ends

On SIGTERM or Ctrl-C the worker takes no more tasks, lets running calls finish within stopMode of your configuration (graceful: 10 s),
and returns its tasks to the store. A second signal ends it immediately; other workers take over its tasks when its lease ends.
Exits with 1 if a newer version has changed the store's format.`;

const OPTIONS = {
  agent: { type: 'string', multiple: true },
  concurrency: { type: 'string', default: '16' },
  ...OPEN_OPTIONS,
  'health-port': { type: 'string' },
  host: { type: 'string', default: '127.0.0.1' },
  'metrics-port': { type: 'string' },
  'metrics-host': { type: 'string', default: '127.0.0.1' },
  watchdog: { type: 'string', default: '10s' },
} as const;
const MAX_CONCURRENCY = 10_000;
const MAX_PORT = 65_535;
const WATCHDOG = { min: 0, max: 3_600_000 };

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const concurrency = readCount('--concurrency', values.concurrency, { max: MAX_CONCURRENCY });
  const watchdogMs = readDuration('--watchdog', values.watchdog, WATCHDOG);
  if (watchdogMs > 0 && watchdogMs < 1_000) throw new UsageError('--watchdog: expected 0, or at least 1s');
  const healthPort = readPort('--health-port', values['health-port']);
  const metricsPort = readPort('--metrics-port', values['metrics-port']);
  const config = await loadConfig(values.config, system);
  if (config.engine !== undefined && values.agent !== undefined) refuseSome(values.agent, agentNames(config));
  const screen = own(new Screen(system, values));
  const ended = waitForEnd(own);
  if (watchdogMs > 0) own(watchLoop(watchdogMs));
  let worker: Worker | undefined;
  const isReady = async (): Promise<boolean> => worker?.isReady() ?? false;
  // Start this before the worker: it is disposed after it, so it still responds while tasks are handed back.
  const serveAt = async (at: string, port: number | undefined, routes: ReturnType<typeof healthRoutes>) =>
    port === undefined ? undefined : own(await serveRoutes({ host: at, port, routes }));
  const health = await serveAt(values.host, healthPort, healthRoutes(isReady));
  const prometheus = metricsPort === undefined ? undefined : await createPrometheusMetrics();
  const telemetry = own(createTelemetry({ ...(prometheus && { prometheus }) }));
  const metrics = prometheus && (await serveAt(values['metrics-host'], metricsPort, metricsRoutes(prometheus.read)));
  const open = own(await openAgents({ config, names: values.agent, values, surroundings: system }));
  const store = own(openSharedStore(config, 'worker', system.env));
  if (prometheus !== undefined) own(await telemetry.watchStore(store));
  const engine = own(await openEngine({ config, store, screen }));
  worker = own(await startWorker({ ...open, store, engine, concurrency, config, telemetry, screen }));
  const webhooks = await startWebhooks({ config, store, telemetry, screen });
  if (webhooks !== undefined) own(webhooks);
  const agents = Object.keys(open.agents);
  const urls = { ...(health && { health: health.url }), ...(metrics && { metrics: metrics.url }) };
  screen.data({ type: 'working', worker: worker.name, agents, ...urls });
  if (!values.json) {
    screen.note(screen.style('dim', open.sandboxShown));
    await notePauses(store, screen, { env: system.env, config: values.config });
    screen.note(
      `takes tasks for ${agents.join(', ')}, ${concurrency} at the same time${health ? `; ${health.url}/readyz` : ''}`,
    );
  }
  await Promise.race([ended, worker.refused]);
  return EXIT.success;
}

/** The engine has one queue: it would hand out tasks of the other agents here, too. */
function refuseSome(given: readonly string[], names: readonly string[]): void {
  if (names.every((name) => given.includes(name))) return;
  throw new UsageError("--agent: the configuration's engine delivers tasks of every agent; remove --agent");
}

function readPort(option: string, port: string | undefined): number | undefined {
  return port === undefined ? undefined : readCount(option, port, { min: 0, max: MAX_PORT });
}
