import { text as readAll } from 'node:stream/consumers';
import {
  type Agent,
  CancellationToken,
  formatStopReport,
  type RunEvent,
  type StopLevel,
  type StopReport,
} from '@whoa/core';
import { createApprovals } from '@whoa/core/approval';
import { waitUntilLevel } from '@whoa/core/embed';
import { createRunner, type TaskRecord, type TaskStore } from '@whoa/tasks';
import type { SandboxOptions } from '@whoa/tools';
import { chooseSandbox, type SandboxWishes } from '../agent/choose-sandbox.ts';
import { openAgent } from '../agent/open-agent.ts';
import { askForConsent } from '../agent/sandbox-consent.ts';
import { protectedPaths } from '../approvals/protected-paths.ts';
import { createJudge } from '../approvals/rules.ts';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { LOCAL_TENANT, openStore, shortId } from '../tasks/local-tasks.ts';
import { createTerminalAsk } from '../terminal/ask.ts';
import { listenForInterrupts } from '../terminal/interrupts.ts';
import { RunView } from '../terminal/run-view.ts';
import { Screen } from '../terminal/screen.ts';
import { inWords } from '../terminal/text/durations.ts';
import { oneLine } from '../terminal/text/plain-text.ts';

const help = `whoa run [options] "prompt"     (or the prompt on standard input)

Gives a prompt to an agent with a shell and file tools in this folder, and shows what it does. It asks before calls that write
or execute. The run is a task: 'whoa tasks', 'whoa watch' and 'whoa cancel' work on it from other terminals.

  --model NAME    anthropic:NAME, openai:NAME, compatible:URL:NAME or scripted:FILE
  --agent NAME    an agent of the configuration
  --config FILE   the configuration file; defaults to whoa.config.ts in your configuration folder
  --sandbox KIND  what commands may access. workspace: write to this folder only, no network, none of your keys;
                  read-only: write nowhere; none: everything that you can access. Defaults to workspace where
                  bubblewrap works, otherwise none. MCP servers run outside the sandbox
  --yes           ask only about protected paths and calls that a rule of the configuration asks about; without a
                  terminal it needs --sandbox
  --json          print one JSON object per line: every event, and the result at the end

Ctrl-C once lets running calls finish (the ladder of your configuration can change that), twice interrupts them, three
times kills them and exits.
Exit code: 0 success, 1 failed, 2 wrong usage, 130 cancelled.`;

const OPTIONS = {
  model: { type: 'string' },
  agent: { type: 'string' },
  config: { type: 'string' },
  sandbox: { type: 'string' },
  yes: { type: 'boolean', default: false },
} as const;

export const runCommand: Command = { help, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const prompt = await readPrompt(positionals);
  const token = own(new CancellationToken({ name: 'whoa run' }));
  const screen = own(
    new Screen({
      onGone: ({ code, message: why }) => {
        const message = code === 'EPIPE' ? 'the reader of the output has gone' : `the output cannot be written: ${why}`;
        token.cancel({ kind: 'disconnect', message }, { mode: 'now' });
      },
    }),
  );
  let view: RunView | undefined;
  const exit = (): void => {
    view?.leave();
    process.exit(EXIT.cancelled);
  };
  const config = await loadConfig(values.config);
  const { ladder: first } = config;
  const level = (): StopLevel | undefined => view?.level;
  const onLastWait = (ms: number): void => view?.lastWait(ms);
  own(listenForInterrupts({ token, exit, level, onLastWait, ...(first !== undefined && { first }) }));
  const judge = createJudge({
    rules: config.approvals ?? [],
    yes: values.yes,
    cwd: process.cwd(),
    protectedPaths: protectedPaths(),
  });
  const approve = createApprovals({ ask: createTerminalAsk({ screen }), until: 'until this run ends', judge });
  const sandbox = await settleSandbox(
    { word: values.sandbox, config, yes: values.yes },
    { screen, asJson: values.json, token },
  );
  const opening = { config, name: values.agent, model: values.model, cwd: process.cwd(), sandbox, approve };
  if (!values.json) screen.status(() => 'opening the agent');
  const opened = await waitUntilLevel(openAgent(opening), token, 'drain');
  if (opened.by === 'error') throw opened.error;
  // Resources that are half open end with the process.
  if (opened.by === 'level') return tellNothing(screen, values.json);
  const open = own(opened.value);
  const store = own(openStore(config));
  view = values.json ? undefined : new RunView(screen, { tools: open.agent.tools, first });
  const show = (event: RunEvent): void => (view === undefined ? screen.data(event) : view.show(event));
  const task = await perform({ own, agent: open.agent, prompt, store, token, show, onTask: (id) => view?.begin(id) });
  tellEnd(task, { screen, asJson: values.json });
  return task.status === 'success' ? EXIT.success : task.status === 'failed' ? EXIT.failed : EXIT.cancelled;
}

/** Prints what commands may access. Asks for consent if `--yes` would run without a sandbox that was not chosen explicitly. */
async function settleSandbox(
  wishes: Pick<SandboxWishes, 'word' | 'config' | 'yes'>,
  { screen, asJson, token }: { screen: Screen; asJson: boolean; token: CancellationToken },
): Promise<SandboxOptions> {
  const isTerminal = process.stdin.isTTY === true;
  const { options, shown, needsConsent } = await chooseSandbox({ ...wishes, isTerminal, cwd: process.cwd() });
  if (asJson) screen.data({ type: 'sandbox', sandbox: options.kind });
  else screen.note(screen.style('dim', shown));
  if (needsConsent && !(await askForConsent(screen, token.signal))) {
    throw new UsageError("not allowed without a sandbox; remove --yes, or add '--sandbox none'");
  }
  return options;
}

/** Reports a run that was cancelled before there was a task. */
function tellNothing(screen: Screen, asJson: boolean): number {
  if (asJson) screen.data({ type: 'result', status: 'cancelled' });
  else screen.note('Cancelled before it began.');
  return EXIT.cancelled;
}

async function readPrompt(positionals: readonly string[]): Promise<string> {
  if (positionals.length > 1) throw new UsageError('expected one prompt; put it in quotes');
  const [given] = positionals;
  const prompt = given ?? (process.stdin.isTTY ? '' : await readAll(process.stdin));
  if (prompt.trim() === '') throw new UsageError('missing prompt; use: whoa run "prompt"');
  return prompt;
}

interface Performance {
  readonly own: Own;
  readonly agent: Agent;
  readonly prompt: string;
  readonly store: TaskStore;
  readonly token: CancellationToken;
  readonly show: (event: RunEvent) => void;
  readonly onTask: (id: string) => void;
}

/** Runs the prompt as a task and returns its final record. */
async function perform({ own, agent, prompt, store, token, show, onTask }: Performance): Promise<TaskRecord> {
  const shown: Promise<void>[] = [];
  const seen: Agent = {
    ...agent,
    run(input, options) {
      const started = agent.run(input, options);
      shown.push(showAll(started.events, show));
      return started;
    },
  };
  let failure: unknown;
  const runner = own(
    createRunner({
      store,
      agents: { [agent.name]: seen },
      hooks: {
        'task-start': ({ id }) => onTask(id),
        'store-error': ({ error }) => {
          failure = error;
        },
      },
    }),
  );
  const { id } = await runner.run({ tenant: LOCAL_TENANT, agent: agent.name, input: prompt }, { token });
  await Promise.all(shown);
  const record = await store.get({ tenant: LOCAL_TENANT, id });
  if (record === undefined) throw new Error('the task is gone from the store', { cause: failure });
  return record;
}

async function showAll(events: AsyncIterable<RunEvent>, show: (event: RunEvent) => void): Promise<void> {
  for await (const event of events) show(event);
}

function tellEnd(task: TaskRecord, { screen, asJson }: { screen: Screen; asJson: boolean }): void {
  const { id, status, outcome } = task;
  if (asJson) {
    screen.data({ type: 'result', id, ...outcome, status });
    return;
  }
  screen.status(undefined);
  screen.endLine();
  const took = task.startedAt === undefined ? 0 : (task.endedAt ?? 0) - task.startedAt;
  if (status === 'success') {
    const { inputTokens = 0, outputTokens = 0 } = outcome?.usage ?? {};
    const spent = `${inputTokens} tokens in, ${outputTokens} out`;
    screen.note(screen.style('dim', `✔ ${shortId(id)} done in ${inWords(took)} · ${spent}`));
  } else if (status === 'failed') {
    screen.note(
      `${screen.style('red', '✘ failed:')} ${oneLine(outcome?.error?.message ?? 'no reason was given', 2_000)}`,
    );
  } else if (outcome?.stop !== undefined) {
    screen.note(formatStopReport(outcome.stop as unknown as StopReport));
  } else {
    screen.note('Cancelled before it began.');
  }
}
