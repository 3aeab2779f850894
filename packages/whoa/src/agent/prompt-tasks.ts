import type { AcpOptions } from '@whoa/acp';
import type { Run, RunOptions } from '@whoa/core';
import { createCleanupList } from '@whoa/core/embed';
import type { NewTask, Runner, TaskStore } from '@whoa/tasks';
import type { WhoaConfig } from '../config/config.ts';
import { reportCleanup } from '../terminal/report-cleanup.ts';

/** How long to wait for the store when the command ends. */
const CLOSE_MS = 5_000;

/** Makes the prompts of all sessions tasks, so that they can be seen, followed and cancelled from other processes. */
export interface PromptTasks extends AsyncDisposable {
  /** Opens the store. Call it before the first prompt, not at startup: it loads the driver. */
  open(): Promise<void>;
  readonly startRun: NonNullable<AcpOptions['startRun']>;
}

export function createPromptTasks(config: Pick<WhoaConfig, 'store'>, env: NodeJS.ProcessEnv): PromptTasks {
  let opened: { readonly runner: Runner; readonly store: TaskStore; readonly tenant: string } | undefined;
  const unsettled = new Set<Promise<unknown>>();
  const cleanups = createCleanupList({ name: 'the tasks of prompts', timeoutMs: CLOSE_MS, onError: reportCleanup });

  return {
    async open() {
      const [{ createRunner }, { openStore, LOCAL_TENANT }] = await Promise.all([
        import('@whoa/tasks'),
        import('../tasks/local-tasks.ts'),
      ]);
      if (opened !== undefined) return;
      const store = openStore(config, env);
      const runner = createRunner({ store, agents: {} });
      opened = { store, runner, tenant: LOCAL_TENANT };
      cleanups.defer(() => store[Symbol.asyncDispose]());
      cleanups.defer(() => runner[Symbol.asyncDispose]());
      cleanups.defer(() => Promise.all(unsettled));
    },
    startRun(agent, input, options) {
      const { runner, tenant } = opened!;
      const task = { tenant, agent: agent.name, input: input as unknown as NewTask['input'] };
      const start = (required: RunOptions): Run => agent.run(input, { ...options, ...required });
      const { run, response } = runner.adopt(task, start, { token: options.token });
      const settled = response.catch(warn).finally(() => unsettled.delete(settled));
      unsettled.add(settled);
      return run;
    },
    [Symbol.asyncDispose]: () => cleanups[Symbol.asyncDispose](),
  };
}

/** The prompt continues, but other processes cannot stop it. */
function warn(error: unknown): void {
  process.emitWarning(new Error('A prompt could not be registered as a task', { cause: error }));
}
