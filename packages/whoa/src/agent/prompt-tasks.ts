import type { AcpOptions } from '@whoa/acp';
import type { Agent, Run, RunOptions } from '@whoa/core';
import { createCleanupList } from '@whoa/core/internal';
import type { NewTask, Runner, TaskApprovals, TaskStore } from '@whoa/tasks';
import { reportCleanup } from '../terminal/report-cleanup.ts';
import type { SessionAgentOptions } from './session-agent.ts';

interface OpenedTasks {
  readonly store: TaskStore;
  readonly createRunner: typeof import('@whoa/tasks').createRunner;
  readonly tenant: string;
  readonly pauses: typeof import('../tasks/pauses.ts');
}

/** How long to wait for the store when the command ends. */
const CLOSE_MS = 5_000;

/** Makes the prompts of all sessions tasks, so that they can be seen, followed and cancelled from other processes. */
export interface PromptTasks extends AsyncDisposable {
  /** Opens the store. Call it before the first prompt, not at startup: it loads the driver. */
  open(): Promise<void>;
  /**
   * Makes the prompts of an agent tasks, whose questions can be answered from other processes too. Call it before its first
   * prompt, and dispose what it returns after the last one.
   */
  use(agent: Agent, approvals: TaskApprovals): AsyncDisposable;
  readonly startRun: NonNullable<AcpOptions['startRun']>;
}

export function createPromptTasks({ config, values, system }: SessionAgentOptions): PromptTasks {
  const { env } = system;
  let opened: OpenedTasks | undefined;
  /** One for each agent: a runner has the approvals of one session. */
  const runners = new WeakMap<Agent, Runner>();
  const unsettled = new Set<Promise<unknown>>();
  const cleanups = createCleanupList({ name: 'the tasks of prompts', timeoutMs: CLOSE_MS, onError: reportCleanup });

  async function whyPaused({ store, tenant, pauses }: OpenedTasks, agent: string): Promise<string | undefined> {
    const pause = pauses.findPause(await pauses.listPauses(store), { tenant, agent });
    return pause && pauses.explainPause(pause, env, values);
  }

  const onPaused = (why: string): void => void system.stderr.write(`whoa acp: ${why}\n`);

  return {
    async open() {
      const [{ createRunner }, { openStore, LOCAL_TENANT }, pauses] = await Promise.all([
        import('@whoa/tasks'),
        import('../tasks/local-tasks.ts'),
        import('../tasks/pauses.ts'),
      ]);
      if (opened !== undefined) return;
      const store = openStore(config, env);
      opened = { store, createRunner, tenant: LOCAL_TENANT, pauses };
      cleanups.defer(() => store[Symbol.asyncDispose]());
      cleanups.defer(() => Promise.all(unsettled));
    },
    use(agent, approvals) {
      const { store, createRunner } = opened!;
      const runner = createRunner({ store, agents: {}, approvals });
      runners.set(agent, runner);
      return runner;
    },
    startRun(agent, input, options) {
      const { tenant } = opened!;
      const runner = runners.get(agent)!;
      const task = { tenant, agent: agent.name, input: input as unknown as NewTask['input'] };
      const paused = whyPaused(opened!, agent.name).catch(() => undefined);
      const { promise: adopting, resolve: adopt } = Promise.withResolvers<RunOptions>();
      const run = agent.run(input, {
        ...options,
        async beforeTurn(turn) {
          const why = await paused;
          if (why !== undefined) throw new Error(why);
          return (await adopting).beforeTurn?.(turn);
        },
        beforeRequest: async () => (await adopting).beforeRequest?.(),
        beforeCall: async (call, context) => (await adopting).beforeCall?.(call, context),
        beforeUndo: async (call) => (await adopting).beforeUndo?.(call),
        answer: async (request, context) => (await adopting).answer!(request, context),
      });
      const start = (required: RunOptions): Run => {
        adopt(required);
        return run;
      };
      const settle = async (): Promise<unknown> => {
        const why = await paused;
        if (why !== undefined) return onPaused(why);
        return runner.adopt(task, start, { token: options.token }).response;
      };
      const settled = settle()
        .catch(warn)
        .finally(() => unsettled.delete(settled));
      unsettled.add(settled);
      return run;
    },
    [Symbol.asyncDispose]: () => cleanups[Symbol.asyncDispose](),
  };
}

/** The prompt continues, but other processes cannot stop it. */
function warn(error: unknown): void {
  process.emitWarning(new Error('Could not register a prompt as a task', { cause: error }));
}
