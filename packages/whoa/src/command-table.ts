import type { CommandEntry } from './command.ts';

// Load each command only when it runs, so that no command pays for the imports of another.
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  run: {
    summary: 'give an agent a prompt; Ctrl-C stops it',
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  chat: {
    summary: 'talk with an agent; Esc or Ctrl-C stops what it does',
    load: async () => (await import('./commands/chat.ts')).chatCommand,
  },
  tasks: {
    summary: 'list running and recent tasks',
    load: async () => (await import('./commands/tasks/tasks.ts')).tasksCommand,
  },
  watch: {
    summary: 'follow a task',
    load: async () => (await import('./commands/tasks/watch.ts')).watchCommand,
  },
  cancel: {
    summary: 'stop a task, from any terminal',
    load: async () => (await import('./commands/tasks/cancel.ts')).cancelCommand,
  },
  approve: {
    summary: 'answer the question of a task, from any terminal',
    load: async () => (await import('./commands/tasks/approve.ts')).approveCommand,
  },
  steer: {
    summary: 'say something to a task that runs',
    load: async () => (await import('./commands/tasks/steer.ts')).steerCommand,
  },
  requeue: {
    summary: 'start failed tasks again',
    load: async () => (await import('./commands/tasks/requeue.ts')).requeueCommand,
  },
  pause: {
    summary: 'deliver no tasks of an agent or a tenant for now',
    load: async () => (await import('./commands/tasks/pause.ts')).pauseCommand,
  },
  resume: {
    summary: 'deliver them again',
    load: async () => (await import('./commands/tasks/pause.ts')).resumeCommand,
  },
  erase: {
    summary: 'remove everything of a tenant or a conversation',
    load: async () => (await import('./commands/tasks/erase.ts')).eraseCommand,
  },
  console: {
    summary: 'open a page with your tasks, their timelines and a Stop button',
    load: async () => (await import('./commands/console.ts')).consoleCommand,
  },
  demo: {
    summary: 'open a page with a working agent and a Stop button; needs no key',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  serve: {
    summary: 'serve tasks and a chat over HTTP',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  worker: {
    summary: 'run the tasks of a shared store',
    load: async () => (await import('./commands/worker.ts')).workerCommand,
  },
  migrate: {
    summary: 'prepare a store for this version, while it is in use',
    load: async () => (await import('./commands/migrate.ts')).migrateCommand,
  },
  acp: {
    summary: 'serve an agent to an editor (Agent Client Protocol)',
    load: async () => (await import('./commands/acp.ts')).acpCommand,
    isProtocol: true,
  },
  mcp: {
    summary: 'serve your agents as tools to an MCP host',
    load: async () => (await import('./commands/mcp.ts')).mcpCommand,
    isProtocol: true,
  },
  echo: {
    summary: 'serve an agent that repeats your prompt, to learn what a cancel does',
    load: async () => (await import('./commands/echo.ts')).echoCommand,
    isProtocol: true,
  },
  check: {
    summary: 'check whether an agent stops when told',
    load: async () => (await import('./commands/check/check.ts')).checkCommand,
  },
  completions: {
    summary: 'print what completes commands and options in your shell',
    load: async () => (await import('./commands/completions.ts')).createCompletionsCommand(COMMANDS),
  },
  new: {
    summary: 'create a tool and the test that proves it stops',
    load: async () => (await import('./commands/new.ts')).newCommand,
  },
  doctor: {
    summary: 'check what works on this machine, and what to do about the rest',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
};
