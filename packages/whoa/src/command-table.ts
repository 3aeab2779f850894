import type { CommandEntry } from './command.ts';

// Load each command only when it runs, so that no command pays for the imports of another.
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  run: {
    summary: 'run an agent on a prompt; Ctrl-C stops it',
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  chat: {
    summary: 'chat with an agent; Esc or Ctrl-C stops it',
    load: async () => (await import('./commands/chat.ts')).chatCommand,
  },
  tasks: {
    summary: 'list running and recent tasks',
    load: async () => (await import('./commands/tasks/tasks.ts')).tasksCommand,
  },
  watch: {
    summary: "follow a task's output",
    load: async () => (await import('./commands/tasks/watch.ts')).watchCommand,
  },
  cancel: {
    summary: 'stop tasks, from any terminal',
    load: async () => (await import('./commands/tasks/cancel.ts')).cancelCommand,
  },
  approve: {
    summary: "answer a task's approval request, from any terminal",
    load: async () => (await import('./commands/tasks/approve.ts')).approveCommand,
  },
  steer: {
    summary: 'send a message to a running task',
    load: async () => (await import('./commands/tasks/steer.ts')).steerCommand,
  },
  requeue: {
    summary: 'run failed or cancelled tasks again as new tasks',
    load: async () => (await import('./commands/tasks/requeue.ts')).requeueCommand,
  },
  pause: {
    summary: 'pause delivery for an agent or a tenant',
    load: async () => (await import('./commands/tasks/pause.ts')).pauseCommand,
  },
  resume: {
    summary: 'resume delivery for an agent or a tenant',
    load: async () => (await import('./commands/tasks/pause.ts')).resumeCommand,
  },
  halt: {
    summary: 'pause and stop all tasks of an agent or a tenant, and wait until nothing runs',
    load: async () => (await import('./commands/tasks/halt.ts')).haltCommand,
  },
  erase: {
    summary: 'delete all records of a tenant or a conversation',
    load: async () => (await import('./commands/tasks/erase.ts')).eraseCommand,
  },
  console: {
    summary: 'open a web page with your tasks, timelines and a Stop button',
    load: async () => (await import('./commands/console.ts')).consoleCommand,
  },
  demo: {
    summary: 'open a demo page with a working agent and a Stop button; no API key needed',
    load: async () => (await import('./commands/demo.ts')).demoCommand,
  },
  serve: {
    summary: 'serve tasks, a chat and the console over HTTP',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  worker: {
    summary: 'run tasks from a shared store',
    load: async () => (await import('./commands/worker.ts')).workerCommand,
  },
  migrate: {
    summary: "migrate a store to this version's format, online",
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
    summary: 'serve a test agent that repeats your prompt (for trying out cancels)',
    load: async () => (await import('./commands/echo.ts')).echoCommand,
    isProtocol: true,
  },
  check: {
    summary: 'test whether an agent stops when you cancel it',
    load: async () => (await import('./commands/check/check.ts')).checkCommand,
  },
  completions: {
    summary: 'print a shell completion script',
    load: async () => (await import('./commands/completions.ts')).createCompletionsCommand(COMMANDS),
  },
  new: {
    summary: 'create a tool with a test that proves it stops',
    load: async () => (await import('./commands/new.ts')).newCommand,
  },
  doctor: {
    summary: "check this machine's setup and suggest fixes",
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
};
