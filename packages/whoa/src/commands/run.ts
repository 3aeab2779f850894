import { CancellationToken, type RunEvent, type StopLevel } from '@whoa/core';
import { createStoreConversations, type TaskStore } from '@whoa/tasks';
import { AGENT_HELP, AGENT_OPTIONS, enterFolder, OPEN_OPTIONS, readBudgets } from '../agent/agent-options.ts';
import { openTerminalAgent } from '../agent/open-terminal-agent.ts';
import { type Command, EXIT, type OptionTable, readArguments, UsageError, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import type { System } from '../system.ts';
import { createConversationName, findConversation } from '../tasks/folder-conversations.ts';
import { LOCAL_TENANT, openStore } from '../tasks/local-tasks.ts';
import { explainPause, findPause, listPauses } from '../tasks/pauses.ts';
import { createTerminalAsk } from '../terminal/ask.ts';
import { commandName } from '../terminal/command-name.ts';
import { isInBackground, TypedLines } from '../terminal/input/typed-lines.ts';
import { listenForInterrupts } from '../terminal/interrupts.ts';
import { printEnd } from '../terminal/run/print-end.ts';
import { RunView } from '../terminal/run/run-view.ts';
import { Screen } from '../terminal/screen.ts';
import { readPrompt } from '../terminal/text/read-prompt.ts';

const help = `whoa run [options] "prompt"
whoa run --continue [TASK] [options] "prompt"

Runs an agent on a prompt, with a shell and file tools in this folder, and shows what it does. Piped input is the prompt, or is
added to it. The agent asks before calls that write or execute. The run is a task: use 'whoa tasks', 'whoa watch', 'whoa cancel',
'whoa approve' and 'whoa steer' on it from other terminals.

  --continue      continue the last run in this folder, or TASK
${AGENT_HELP}
  --json          print one JSON object per line: every event, and the result at the end

Press Ctrl-C once to stop now, except for calls that must finish (stopMode in your configuration can change that), twice to kill
everything and exit. Without a terminal, the command fails if 'whoa pause' or 'whoa halt' has paused its tasks.
Exit code: 0 success, 1 failed, 2 wrong usage, 130 cancelled.`;

const OPTIONS = { ...OPEN_OPTIONS, ...AGENT_OPTIONS } as const satisfies OptionTable;

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, Infinity);
  const { stdin, stdout, stderr, env } = system;
  const budgets = readBudgets(values);
  const isFull = values.output === 'full';
  enterFolder(values.cwd, system);
  const [continued, words] =
    values.continue && positionals.length > 1 ? [positionals[0], positionals.slice(1)] : [undefined, positionals];
  const prompt = await readPrompt(words, { input: stdin });
  const token = own(new CancellationToken({ name: 'whoa run' }));
  const onGone = ({ code, message: why }: NodeJS.ErrnoException): void => {
    const message = code === 'EPIPE' ? 'the reader of the output has gone' : `the output cannot be written: ${why}`;
    token.cancel({ kind: 'disconnect', message }, { mode: 'now' });
  };
  const screen = own(new Screen({ stdout, stderr, onGone }, values));
  let view: RunView | undefined;
  const exit = (): void => {
    view?.leave();
    system.exit(EXIT.cancelled);
  };
  const config = await loadConfig(values.config, system);
  const { stopMode: first } = config;
  const level = (): StopLevel | undefined => view?.level;
  const onLastWait = (ms: number): void => view?.lastWait(ms);
  own(listenForInterrupts({ token, exit, level, onLastWait, signals: system, first }));
  let lines: TypedLines | undefined;
  const ask = createTerminalAsk({ screen, input: stdin, output: stderr, lines: () => lines });
  const until = 'until this run ends';
  const open = await openTerminalAgent({ values, config, budgets, screen, ask, until, token, own, system });
  if (open === undefined) return printNothing(screen);
  // Keeps what is typed off the screen. In a pipeline, keys may be for the program that shows our output.
  if (stdin.isTTY && stdout.isTTY && !isInBackground()) lines = own(new TypedLines({}, stdin, stderr));
  const store = own(openStore(config, env));
  const conversation = values.continue
    ? await findConversation(store, continued, system)
    : createConversationName(system.cwd());
  const pause = findPause(await listPauses(store), { tenant: LOCAL_TENANT, agent: open.agent.name });
  if (pause !== undefined) noteWait(explainPause(pause, env, values), screen, system);
  view = values.json ? undefined : new RunView(screen, { tools: open.agent.tools, first, isFull });
  const show = (event: RunEvent): void => (view === undefined ? screen.data(event) : view.show(event));
  let failure: unknown;
  const conversations = own(
    createStoreConversations({
      store,
      ...open,
      tenant: LOCAL_TENANT,
      hooks: {
        ...open.hooks,
        'task-start': ({ id }) => view?.begin(id),
        'store-error': ({ error }) => {
          failure = error;
        },
      },
    }),
  );
  const reply = await conversations.processMessage(conversation, prompt, { policy: 'reject', token, onEvent: show });
  if (reply.status === 'rejected') throw await busy(store, conversation, commandName(env));
  if (reply.status === 'released') {
    throw new Error(
      'the store could not be reached in time, so the task was abandoned; check the store and run it again',
      { cause: failure },
    );
  }
  const { task } = reply;
  if (task === undefined) return printNothing(screen);
  screen.data({ type: 'result', id: task.id, ...task.outcome, status: task.status });
  if (!values.json) printEnd(task, screen);
  return task.status === 'success' ? EXIT.success : task.status === 'failed' ? EXIT.failed : EXIT.cancelled;
}

/** Shows why the run does not start. Throws where no one would see that it waits. */
function noteWait(why: string, screen: Screen, { stderr }: System): void {
  if (!stderr.isTTY) throw new Error(why);
  screen.status(undefined);
  screen.note(screen.style('yellow', `■ waiting: ${why}`));
}

/** Reports a run that was cancelled before there was a task. */
function printNothing(screen: Screen): number {
  screen.data({ type: 'result', status: 'cancelled' });
  if (!screen.asJson) screen.note('Cancelled before it began.');
  return EXIT.cancelled;
}

async function busy(store: TaskStore, conversation: string, whoa: string): Promise<UsageError> {
  const { current } = (await store.conversation({ tenant: LOCAL_TENANT, conversation })) ?? {};
  return new UsageError(
    `--continue: ${current ?? 'a task'} of this conversation has not ended; use '${whoa} steer' or '${whoa} cancel'`,
  );
}
