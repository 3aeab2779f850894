import type { Agent, CancellationToken, Run, RunEvent, RunOptions, StopLevel, StopMode } from '@whoa/core';
import { createRunner, type NewTask, type TaskStore } from '@whoa/tasks';
import { LOCAL_TENANT } from './local-tasks.ts';

export interface RegisterOptions {
  readonly store: TaskStore;
  /** Called when a run could not be registered. The run continues, but other processes cannot stop it. */
  readonly onProblem: (error: unknown) => void;
}

/** An agent whose runs are tasks in a store, for an adapter that starts runs itself. */
export interface RegisteredAgent {
  readonly agent: Agent;
  /** Resolves when all runs have ended and their ends are stored. */
  settled(): Promise<void>;
}

const MODES: Readonly<Record<StopLevel, StopMode>> = { drain: 'graceful', abort: 'now', kill: 'kill' };

/** Registers every run of an agent, so that it can be seen, followed and cancelled from other processes. */
export function registeredAgent(agent: Agent, options: RegisterOptions): RegisteredAgent {
  const registering = new Set<Promise<void>>();
  return {
    agent: {
      ...agent,
      run(input, given = {}) {
        // The run options of the runner, or `undefined` if the store is not available.
        const wanted = Promise.withResolvers<RunOptions | undefined>();
        const run = agent.run(input, {
          ...given,
          async beforeCall(call, context) {
            await given.beforeCall?.(call, context);
            await (await wanted.promise)?.beforeCall?.(call, context);
          },
          async beforeUndo(call) {
            await given.beforeUndo?.(call);
            await (await wanted.promise)?.beforeUndo?.(call);
          },
        });
        const task = { tenant: LOCAL_TENANT, agent: agent.name, input: inputOf(input) };
        const registered = register({ run, task, token: given.token, agent, onWanted: wanted.resolve }, options)
          .catch(options.onProblem)
          .finally(() => {
            wanted.resolve(undefined);
            registering.delete(registered);
          });
        registering.add(registered);
        return run;
      },
    },
    async settled() {
      while (registering.size > 0) await Promise.all(registering);
    },
  };
}

interface Registration {
  readonly run: Run;
  readonly task: NewTask;
  readonly agent: Agent;
  readonly token: CancellationToken | undefined;
  readonly onWanted: (options: RunOptions) => void;
}

async function register(registration: Registration, { store }: RegisterOptions): Promise<void> {
  const { run, task, agent, token, onWanted } = registration;
  const underWay: Agent = {
    ...agent,
    run(_, options = {}) {
      onWanted(options);
      return followed(run, options);
    },
  };
  const runner = createRunner({ store, agents: { [agent.name]: underWay } });
  try {
    const { id, status } = await runner.run(task, { ...(token && { token }) });
    // If the task was cancelled before the runner took it, only this cancels the run.
    if (status === 'cancelled') run.cancel((await store.get({ ...task, id }))?.outcome?.reason, { mode: 'now' });
    await run.outcome;
  } finally {
    await runner[Symbol.asyncDispose]();
  }
}

/** Presents a started run to its runner. It follows the runner's token, and its outcome comes after its last event. */
function followed(run: Run, { token, hooks }: RunOptions): Run {
  token?.onCancel((level, reason) => run.cancel(reason, { mode: MODES[level], undo: token.undo }));
  const told = tellAll(run.events, (event) => hooks?.any?.(event));
  return {
    id: run.id,
    get text() {
      return run.text;
    },
    events: run.events,
    outcome: told.then(() => run.outcome),
    cancel: (reason, options) => run.cancel(reason, options),
    cancelCall: (callId, reason, options) => run.cancelCall(callId, reason, options),
    undo: () => run.undo(),
    steer: (message) => run.steer(message),
  };
}

async function tellAll(events: AsyncIterable<RunEvent>, tell: (event: RunEvent) => void): Promise<void> {
  for await (const event of events) tell(event);
}

function inputOf(input: Parameters<Agent['run']>[0]): NewTask['input'] {
  return input as unknown as NewTask['input'];
}
