import { CancellationToken } from '@whoa/core';
import { createStoreConversations } from '@whoa/tasks';
import { AGENT_HELP, AGENT_OPTIONS, enterFolder, OPEN_OPTIONS, readBudgets } from '../agent/agent-options.ts';
import { openTerminalAgent } from '../agent/open-terminal-agent.ts';
import { Chat } from '../chat/chat.ts';
import { type Command, EXIT, type OptionTable, readArguments, UsageError, type Use } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import type { System } from '../system.ts';
import { createConversationName, findConversation } from '../tasks/folder-conversations.ts';
import { LOCAL_TENANT, openStore } from '../tasks/local-tasks.ts';
import { explainPause, findPause, listPauses } from '../tasks/pauses.ts';
import { createTerminalAsk } from '../terminal/ask.ts';
import { commandName } from '../terminal/command-name.ts';
import { TypedLines } from '../terminal/input/typed-lines.ts';
import { listenForEnd, listenForInterrupts } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa chat [options]
whoa chat --continue [TASK] [options]

Starts a chat with an agent that has a shell and file tools in this folder. The agent remembers the conversation. It reads what you
type while it works before its next step, and asks before calls that write or execute.

  --continue      continue the last conversation in this folder, or TASK's
${AGENT_HELP}

Esc or Ctrl-C stops the agent now, except for calls that must finish; again kills them. The conversation continues. Ctrl-D, or
Ctrl-C twice while the agent is idle, exits.
Every prompt is a task: use 'whoa tasks', 'whoa watch', 'whoa cancel', 'whoa approve' and 'whoa steer' on it.`;

const OPTIONS = { ...OPEN_OPTIONS, ...AGENT_OPTIONS } as const satisfies OptionTable;
const WAYS = 'Esc stops the agent, Ctrl-D leaves; what you type while it works steers it.';

export const command: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  if (!system.stdin.isTTY || !system.stdout.isTTY || !system.stderr.isTTY || values.json)
    throw new UsageError('a chat needs a terminal; without one, use: whoa run "prompt"');
  if (!values.continue && positionals.length > 0)
    throw new UsageError(`unexpected argument '${positionals[0]}'; type it after the chat has started`);
  const budgets = readBudgets(values);
  const isFull = values.output === 'full';
  enterFolder(values.cwd, system);
  const screen = own(new Screen());
  const config = await loadConfig(values.config, system);
  const token = own(new CancellationToken({ name: 'whoa chat' }));
  const exit = (): never => process.exit(EXIT.cancelled);
  const opening = listenForInterrupts({ token, exit });
  let lines: TypedLines | undefined;
  const ask = createTerminalAsk({ screen, lines: () => lines });
  const until = 'until this chat ends';
  const open = await openTerminalAgent({ values, config, budgets, screen, ask, until, token, own, system });
  opening[Symbol.dispose]();
  if (open === undefined) return EXIT.cancelled;
  const { agent, approvals } = open;
  const store = own(openStore(config, system.env));
  const conversation = values.continue
    ? await findConversation(store, positionals[0], system)
    : createConversationName(system.cwd());
  const hooks = { ...open.hooks, 'task-start': ({ id }: { readonly id: string }) => chat.showTask(id) };
  const conversations = own(createStoreConversations({ store, agent, approvals, tenant: LOCAL_TENANT, hooks }));
  const chat = new Chat({
    conversations,
    conversation,
    screen,
    async explainWait() {
      const pause = findPause(await listPauses(store), { tenant: LOCAL_TENANT, agent: agent.name });
      return pause && explainPause(pause, system.env, values);
    },
    tools: agent.tools,
    first: config.stopMode,
    isFull,
  });
  own(listenForEnd(({ via }) => via !== 'SIGINT' && chat.leave()));
  screen.status(undefined);
  screen.note(screen.style('dim', WAYS));
  if (values.continue) {
    const { length } = await conversations.history(conversation);
    screen.note(screen.style('dim', `The conversation so far has ${length} ${length === 1 ? 'message' : 'messages'}.`));
  }
  lines = own(readLines(chat, screen));
  await chat.closed;
  screen.input(undefined);
  screen.note(screen.style('dim', `'${commandName()} chat --continue' continues this conversation.`));
  return EXIT.success;
}

/** Connects what is typed with the chat. An empty line is shown only while the agent is idle. */
function readLines(chat: Chat, screen: Screen): TypedLines {
  const lines = new TypedLines({
    onChange: (text, cursor) => screen.input(chat.isIdle || text !== '' ? text : undefined, cursor),
    onLine: (text, shown) => text !== '' && chat.send(text, shown),
    onInterrupt(key) {
      if (chat.isIdle && !lines.isEmpty) lines.clear();
      else chat.interrupt(key);
    },
    onEnd: () => chat.isIdle && chat.leave(),
    onClosed: () => process.emit('SIGHUP', 'SIGHUP'),
  });
  chat.onIdle = () => lines.show();
  lines.show();
  return lines;
}
