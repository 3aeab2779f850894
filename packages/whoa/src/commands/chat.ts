import { EventEmitter } from 'node:events';
import { CancellationToken } from '@whoa/core';
import type { Ask } from '@whoa/core/approval';
import { createStoreConversations } from '@whoa/tasks';
import { AGENT_HELP, AGENT_OPTIONS, enterFolder, readBudgets } from '../agent/agent-options.ts';
import { openTerminalAgent } from '../agent/open-terminal-agent.ts';
import { Chat } from '../chat/chat.ts';
import { type Command, EXIT, type OptionTable, type Own, readArguments, UsageError } from '../command.ts';
import { loadConfig } from '../config/load.ts';
import { createConversationName, findConversation } from '../tasks/folder-conversations.ts';
import { LOCAL_TENANT, openStore } from '../tasks/local-tasks.ts';
import { createTerminalAsk } from '../terminal/ask.ts';
import { commandName } from '../terminal/command-name.ts';
import { listenForInterrupts } from '../terminal/interrupts.ts';
import { Screen } from '../terminal/screen.ts';
import { LineEditor } from '../terminal/text/line-editor.ts';

const help = `whoa chat [options]
whoa chat --continue [TASK] [options]

Talks with an agent that has a shell and file tools in this folder. It remembers what was said and done. What you type while it
works reaches it before its next step. It asks before calls that write or execute.

  --continue      go on with the last conversation in this folder, or with that of TASK
${AGENT_HELP}

Esc or Ctrl-C stops what the agent does, harder each time; the conversation goes on. Ctrl-D, or Ctrl-C twice while it is idle,
leaves. Every prompt is a task: 'whoa tasks', 'whoa watch', 'whoa cancel', 'whoa approve' and 'whoa steer' work on it.`;

const OPTIONS = { ...AGENT_OPTIONS, continue: { type: 'boolean', default: false } } as const satisfies OptionTable;
const WAYS = 'Esc stops the agent, Ctrl-D leaves; what you type while it works steers it.';

export const chatCommand: Command = { help, options: OPTIONS, run };

async function run(args: readonly string[], own: Own): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 1);
  if (!process.stdin.isTTY || !process.stdout.isTTY || !process.stderr.isTTY || values.json)
    throw new UsageError('a chat needs a terminal; without one, use: whoa run "prompt"');
  if (!values.continue && positionals.length > 0)
    throw new UsageError(`unexpected argument '${positionals[0]}'; say it when the chat has begun`);
  const budgets = readBudgets(values);
  const isFull = values.output === 'full';
  enterFolder(values.cwd);
  const screen = own(new Screen());
  const signals = own(forwardSignals());
  const config = await loadConfig(values.config);
  const token = own(new CancellationToken({ name: 'whoa chat' }));
  const exit = (): never => process.exit(EXIT.cancelled);
  const opening = listenForInterrupts({ token, exit, signals: signals as unknown as NodeJS.Process });
  let editor: LineEditor | undefined;
  const askHere = createTerminalAsk({ screen });
  // A question reads the terminal itself.
  const ask: Ask = (question, context) =>
    editor === undefined ? askHere(question, context) : editor.whilePaused(() => askHere(question, context));
  const until = 'until this chat ends';
  const open = await openTerminalAgent({ values, config, budgets, screen, ask, until, token, own });
  opening[Symbol.dispose]();
  if (open === undefined) return EXIT.cancelled;
  const { agent, approvals } = open;
  const store = own(openStore(config));
  const cwd = process.cwd();
  const conversation = values.continue
    ? await findConversation(store, cwd, positionals[0])
    : createConversationName(cwd);
  const hooks = { 'task-start': ({ id }: { readonly id: string }) => chat.showTask(id) };
  const conversations = own(createStoreConversations({ store, agent, approvals, tenant: LOCAL_TENANT, hooks }));
  const chat = new Chat({
    conversations,
    conversation,
    screen,
    tools: agent.tools,
    first: config.ladder,
    isFull,
    signals,
  });
  for (const name of ['SIGTERM', 'SIGHUP']) signals.on(name, () => chat.leave());
  screen.status(undefined);
  screen.note(screen.style('dim', WAYS));
  if (values.continue) tellHistory(screen, (await conversations.history(conversation)).length);
  editor = own(openEditor(chat, screen, signals));
  await chat.closed;
  screen.input(undefined);
  screen.note(screen.style('dim', `'${commandName()} chat --continue' goes on with this conversation.`));
  return EXIT.success;
}

/** Connects what is typed with the chat. An empty line is shown only while the agent is idle. */
function openEditor(chat: Chat, screen: Screen, signals: EventEmitter): LineEditor {
  const show = (text: string): void => screen.input(chat.isIdle || text !== '' ? text : undefined);
  const editor = new LineEditor({
    onChange: show,
    onLine: (line) => chat.send(line),
    onInterrupt: (key) => {
      if (chat.isIdle && editor.text !== '') editor.clear();
      else chat.interrupt(key);
    },
    onEnd: () => {
      if (chat.isIdle) chat.leave();
    },
    onClosed: () => signals.emit('SIGHUP'),
  });
  chat.onIdle = () => show(editor.text);
  editor.resume();
  show('');
  return editor;
}

function tellHistory(screen: Screen, count: number): void {
  screen.note(screen.style('dim', `The conversation so far has ${count} ${count === 1 ? 'message' : 'messages'}.`));
}

/** Forwards the signals of the process to an emitter that keys also use. */
function forwardSignals(): EventEmitter & Disposable {
  const emitter = new EventEmitter();
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  const handlers = names.map((name) => [name, () => void emitter.emit(name)] as const);
  for (const [name, handler] of handlers) process.on(name, handler);
  return Object.assign(emitter, {
    [Symbol.dispose]() {
      for (const [name, handler] of handlers) process.off(name, handler);
    },
  });
}
