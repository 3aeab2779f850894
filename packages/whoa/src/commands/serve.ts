import { describeError } from '@whoa/core/internal';
import {
  combineAuthenticators,
  createAccess,
  createAgUiHandler,
  createChatHandler,
  createConsoleHandler,
  createLogin,
  createMcpHandler,
  createTaskApi,
} from '@whoa/server';
import { createPrometheusMetrics, createTelemetry } from '@whoa/server/telemetry';
import { OPEN_OPTIONS } from '../agent/agent-options.ts';
import { agentNames, chooseNames, describeAgents, openAgents } from '../agent/open-agents.ts';
import { type Command, EXIT, readArguments, readCount, readDuration, UsageError, type Use } from '../command.ts';
import type { WhoaConfig } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { listenForDrain } from '../serve/drain.ts';
import { listenAt } from '../serve/listen-at.ts';
import { readServerTokens } from '../serve/server-tokens.ts';
import type { System } from '../system.ts';
import { openSharedStore, openStore } from '../tasks/local-tasks.ts';
import { notePauses } from '../tasks/pauses.ts';
import { commandName } from '../terminal/command-name.ts';
import { Screen } from '../terminal/screen.ts';
import { oneLine } from '../terminal/text/plain-text.ts';
import { openEngine } from '../worker/open-engine.ts';
import { startWebhooks } from '../worker/start-webhooks.ts';
import { startWorker, type Worker } from '../worker/start-worker.ts';

const help = `whoa serve [options]

Serves the tasks in your configuration's store over HTTP until you stop it:

  /v1                      the task API, described by /openapi.json
  /console                 a page that shows and stops tasks
  /api/chat, /api/ag-ui    a chat for useChat and for AG-UI clients
  /mcp                     the agents as tools for MCP hosts
  /metrics                 metrics for Prometheus

Clients need a token, even on this machine. Without WHOA_TOKEN or --token-file, the command creates one at the start and shows it once.

  --agent NAME       the agent that answers in the chat; defaults to the first agent in the configuration
  --port PORT        defaults to 8787; 0 chooses a free port
  --host HOST        defaults to 127.0.0.1, which other machines cannot reach. For any other, put a proxy with TLS in front of it
  --hostname NAME    with another --host: a name that clients use, such as app.example.com; can be repeated. Other names are rejected
  --origin ORIGIN    the origin of a page that may send requests, such as https://app.example.com; can be repeated
  --token-file FILE  tokens as JSON: [{ "sha256": "…", "tenant": "acme", "name": "ann", "rights": ["read", "start", "cancel"] }]
  --drain DURATION   how long it accepts requests after SIGTERM while /readyz reports 503; defaults to drainMs of your configuration, or 5s
  --work             also run tasks in this process, as 'whoa worker' does
  --concurrency N    with --work: how many tasks run at the same time; defaults to 16
  --model NAME       with --work: as for 'whoa run'
  --sandbox KIND     with --work: what commands may access: workspace, read-only or none
  --yes              with --work: allow calls that no rule matches; needs --sandbox
  --config FILE      the configuration file
  --json             print one JSON object per line

On SIGTERM the server reports that it is not ready, but accepts requests until the drain ends or another signal arrives, so that a load
balancer has time to choose another server. Ctrl-C skips the drain. Then the server closes open streams, so that clients reconnect to
another server, and returns its tasks to the store. One more signal ends it immediately.`;

const OPTIONS = {
  agent: { type: 'string' },
  port: { type: 'string', default: '8787' },
  host: { type: 'string', default: '127.0.0.1' },
  hostname: { type: 'string', multiple: true, default: [] as string[] },
  origin: { type: 'string', multiple: true },
  'token-file': { type: 'string' },
  drain: { type: 'string' },
  work: { type: 'boolean', default: false },
  concurrency: { type: 'string', default: '16' },
  ...OPEN_OPTIONS,
} as const;
const MAX_PORT = 65_535;
const MAX_CONCURRENCY = 10_000;
const DRAIN = { min: 0, max: 3_600_000 };
const DRAIN_MS = 5_000;
const MAX_ERROR_CHARACTERS = 300;
const LOOPBACK: readonly string[] = ['localhost', '127.0.0.1', '::1'];
const CHAT = '/api/chat';
const AG_UI = '/api/ag-ui';
const MCP = '/mcp';

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values } = readArguments(args, OPTIONS);
  const port = readCount('--port', values.port, { min: 0, max: MAX_PORT });
  const concurrency = readCount('--concurrency', values.concurrency, { max: MAX_CONCURRENCY });
  const origins = readOrigins(values.origin);
  const hosts = toHosts(values.host, values.hostname, origins);
  const config = await loadConfig(values.config, system);
  const [chatAgent = ''] = chooseNames(config, values.agent === undefined ? undefined : [values.agent]);
  const { authenticate: byToken, made } = readServerTokens(values['token-file'], system);
  const login = createLogin({ tokens: byToken });
  const authenticate = combineAuthenticators(byToken, login.authenticate);
  const screen = own(new Screen(system, values));
  const drainMs = readDrain(values.drain, config);
  let worker: Worker | undefined;
  const { isDraining, untilClosing } = listenForDrain(own, {
    drainMs,
    onDrain() {
      // The cleanup of the command waits for it, and reports its error.
      worker?.[Symbol.asyncDispose]().then(undefined, () => {});
      screen.data({ type: 'draining', drainMs });
      if (!values.json)
        screen.note(`no longer ready; accepts requests for ${drainMs / 1_000} s, another signal ends the wait`);
    },
  });
  const onError = (error: unknown): void => {
    const message = oneLine(describeError(error), MAX_ERROR_CHARACTERS);
    screen.data({ type: 'server-error', message });
    if (!values.json) screen.note(`✘ ${message}`);
  };
  const open = values.work ? own(await openAgents({ config, values, surroundings: system })) : undefined;
  const opened = own(values.work ? openStore(config, system.env) : openSharedStore(config, 'serve', system.env));
  const prometheus = await createPrometheusMetrics();
  const telemetry = own(createTelemetry({ prometheus }));
  const engine = own(await openEngine({ config, store: opened, screen }));
  const store = telemetry.observeStore(opened);
  own(await telemetry.watchStore(opened));
  const { approvers, starterMayAnswer } = config;
  if (open !== undefined)
    worker = own(await startWorker({ ...open, store: opened, engine, concurrency, config, telemetry, screen }));
  const webhooks = await startWebhooks({ config, store: opened, telemetry, screen });
  if (webhooks !== undefined) own(webhooks);
  const rules = { authenticate, origins, hosts, approvers, starterMayAnswer };
  const shared = { ...rules, store, hooks: { 'hook-error': ({ error }: { error: unknown }) => onError(error) } };
  const chat = own(createChatHandler({ ...shared, agent: chatAgent, api: CHAT }));
  const agUi = own(createAgUiHandler({ ...shared, agent: chatAgent, api: AG_UI }));
  const access = createAccess({ ...rules, onError });
  const names = agentNames(config);
  const mcp = await createMcpHandler({ store, access, agents: describeAgents(names) });
  const tasks = createTaskApi({ store, login, access, agents: names, metrics: prometheus.read, isDraining, onError });
  const page = createConsoleHandler();
  const route = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === '/' || pathname.startsWith(page.path)) return page.fetch(request);
    const isAt = (api: string): boolean => pathname === api || pathname.startsWith(`${api}/`);
    if (isAt(AG_UI)) return agUi.fetch(request);
    if (pathname === MCP) return mcp.fetch(request);
    return isAt(CHAT) ? chat.fetch(request) : tasks.fetch(request);
  };
  const fetch = async (request: Request): Promise<Response> => {
    const response = await route(request);
    // The client's next request opens a connection, which a load balancer sends to another server.
    if (isDraining()) response.headers.set('connection', 'close');
    return response;
  };
  await notePauses(opened, screen, { env: system.env, config: values.config });
  const { url } = own(await listenAt({ fetch }, { host: values.host, port }));
  screen.data({ type: 'listening', url, ...(made && { token: made }) });
  printStart(screen, { url, chatAgent, made, isWorking: values.work, whoa: commandName(system.env) });
  await untilClosing();
  screen.data({ type: 'closing' });
  return EXIT.success;
}

function readDrain(given: string | undefined, { drainMs = DRAIN_MS }: Pick<WhoaConfig, 'drainMs'>): number {
  return given === undefined ? drainMs : readDuration('--drain', given, DRAIN);
}

function readOrigins(given: readonly string[] = []): readonly string[] {
  const wrong = given.find((origin) => !URL.canParse(origin) || new URL(origin).origin !== origin);
  if (wrong !== undefined) throw new UsageError(`--origin: expected an origin (https://example.com), got '${wrong}'`);
  return given;
}

/** Accept only our own host names, against DNS rebinding. Beyond loopback only the operator knows the names. */
function toHosts(host: string, names: readonly string[], origins: readonly string[]): readonly string[] | 'any' {
  const wrong = names.find((name) => URL.parse(`http://${name}`)?.host !== name);
  if (wrong !== undefined) throw new UsageError(`--hostname: expected a name such as app.example.com, got '${wrong}'`);
  if (!LOOPBACK.includes(host) && names.length === 0) return 'any';
  return [...LOOPBACK, '[::1]', ...names, ...origins.map((origin) => new URL(origin).host)];
}

interface Start {
  readonly url: string;
  readonly chatAgent: string;
  readonly made: string | undefined;
  readonly isWorking: boolean;
  readonly whoa: string;
}

function printStart(screen: Screen, { url, chatAgent, made, isWorking, whoa }: Start): void {
  screen.line(`Serving ${url}: tasks at /v1, a chat with ${chatAgent} at ${CHAT} and ${AG_UI}; Ctrl-C stops it.`);
  screen.line(`The console, a page that shows and stops tasks: ${url}/console/ (log in with a token)`);
  if (made !== undefined) {
    screen.line(`\nThe token, shown only now:\n  export WHOA_TOKEN=${made}\n  ${whoa} tasks --server ${url}`);
    screen.line(
      'It has all rights. To keep one across restarts, set WHOA_TOKEN for the server too, or use --token-file.\n',
    );
  }
  if (!isWorking) screen.line(`Tasks wait for a worker: ${whoa} worker, or add --work.`);
}
