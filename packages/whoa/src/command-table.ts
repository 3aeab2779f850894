import type { CommandEntry } from './command.ts';

// Load each command only when it runs, so that no command pays for the imports of another.
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  run: { summary: 'run an agent on a prompt; Ctrl-C stops it', load: () => import('./commands/run.ts') },
  chat: { summary: 'chat with an agent; Esc or Ctrl-C stops it', load: () => import('./commands/chat.ts') },
  tasks: { summary: 'list running and recent tasks', load: () => import('./commands/tasks/tasks.ts') },
  watch: { summary: "follow a task's output", load: () => import('./commands/tasks/watch.ts') },
  cancel: { summary: 'stop tasks, from any terminal', load: () => import('./commands/tasks/cancel.ts') },
  approve: {
    summary: "answer a task's approval request, from any terminal",
    load: () => import('./commands/tasks/approve.ts'),
  },
  steer: { summary: 'send a message to a running task', load: () => import('./commands/tasks/steer.ts') },
  requeue: {
    summary: 'run failed or cancelled tasks again as new tasks',
    load: () => import('./commands/tasks/requeue.ts'),
  },
  pause: { summary: 'pause delivery for an agent or a tenant', load: () => import('./commands/tasks/pause.ts') },
  resume: {
    summary: 'resume delivery for an agent or a tenant',
    load: async () => ({ command: (await import('./commands/tasks/pause.ts')).resumeCommand }),
  },
  halt: {
    summary: 'pause and stop all tasks of an agent or a tenant, and wait until nothing runs',
    load: () => import('./commands/tasks/halt.ts'),
  },
  engine: {
    summary: 'list the agents that an engine delivers, and take them back',
    load: () => import('./commands/engine.ts'),
  },
  erase: {
    summary: 'delete all records of a tenant or a conversation',
    load: () => import('./commands/tasks/erase.ts'),
  },
  console: {
    summary: 'open a web page with your tasks, timelines and a Stop button',
    load: () => import('./commands/console.ts'),
  },
  demo: {
    summary: 'open a demo page with a working agent and a Stop button; no API key needed',
    load: () => import('./commands/demo.ts'),
  },
  serve: { summary: 'serve tasks, a chat and the console over HTTP', load: () => import('./commands/serve.ts') },
  worker: { summary: 'run tasks from a shared store', load: () => import('./commands/worker.ts') },
  migrate: { summary: "migrate a store to this version's format, online", load: () => import('./commands/migrate.ts') },
  acp: {
    summary: 'serve an agent to an editor (Agent Client Protocol)',
    load: () => import('./commands/acp.ts'),
    isProtocol: true,
  },
  mcp: {
    summary: 'serve your agents as tools to an MCP host',
    load: () => import('./commands/mcp.ts'),
    isProtocol: true,
  },
  echo: {
    summary: 'serve a test agent that repeats your prompt (for trying out cancels)',
    load: () => import('./commands/echo.ts'),
    isProtocol: true,
  },
  check: { summary: 'test whether an agent stops when you cancel it', load: () => import('./commands/check/check.ts') },
  completions: {
    summary: 'print a shell completion script',
    load: async () => ({ command: (await import('./commands/completions.ts')).createCompletionsCommand(COMMANDS) }),
  },
  new: { summary: 'create a tool with a test that proves it stops', load: () => import('./commands/new.ts') },
  doctor: { summary: "check this machine's setup and suggest fixes", load: () => import('./commands/doctor.ts') },
};
