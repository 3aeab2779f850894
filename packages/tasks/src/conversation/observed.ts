import type { Agent, AppContext, CancelReasonInit } from '@whoa/core';
import { createReason, type World } from '@whoa/core/embed';
import { type ConversationEvent, createHookDispatcher, type HookError, type Hooks } from '@whoa/core/internal';
import type { RunnerEvent } from '../delivery/worker-context.ts';
import type { RunnerOptions } from '../run/runner.ts';
import type { StoreCancelReceipt } from '../store.ts';
import type { StoreReply } from './reply.ts';

/** What happens in conversations, and to their tasks in this process. */
export type StoreConversationEvent = RunnerEvent | ConversationEvent<StoreReply>;

export type StoreConversationHooks = Hooks<StoreConversationEvent | HookError>;

type RunnerHooks = NonNullable<RunnerOptions['hooks']>;
type UnstampedRunnerEvent<Event> = Event extends unknown ? Omit<Event, 'at' | 'conversationId'> : never;

interface RunHere {
  readonly conversation: string;
  runId?: string | undefined;
  context?: AppContext | undefined;
}

/** Reports to hooks what happens in conversations, as those in memory do. */
export class ObservedConversations {
  readonly emit: (event: RunnerEvent) => void;
  readonly #hooks: StoreConversationHooks | undefined;
  readonly #world: World;
  readonly #dispatch: (event: StoreConversationEvent, about?: { context?: AppContext | undefined }) => void;
  /** The runs in this process, by task. */
  readonly #running = new Map<string, RunHere>();

  constructor(hooks: StoreConversationHooks | undefined, world: World) {
    this.#hooks = hooks;
    this.#world = world;
    this.#dispatch = createHookDispatcher<StoreConversationEvent>(hooks);
    this.emit = this.#dispatch;
  }

  report(
    conversationId: string,
    event: UnstampedRunnerEvent<ConversationEvent<StoreReply>>,
    context?: AppContext,
  ): void {
    const stamped = { ...event, at: this.#world.clock.now(), conversationId };
    this.#dispatch(stamped as ConversationEvent<StoreReply>, { context });
  }

  /** Reports a cancel that was requested here, unless a run in this process reports it. */
  reportCancel(conversationId: string, { result }: StoreCancelReceipt, given: CancelReasonInit): void {
    const run = [...this.#running.values()].find(({ conversation }) => conversation === conversationId);
    if (result === 'accepted' && run?.runId !== undefined) return;
    const reason = createReason(given, this.#world.clock.now());
    const found = {
      receipt: result === 'not-found' ? 'too-late' : result,
      reason,
      ...(run?.runId && { runId: run.runId }),
    };
    this.report(conversationId, { type: 'cancel-requested', ...found }, run?.context);
  }

  /** Hooks for the runner, which learn the conversation of each run. `onEnd` is called after the hook of the caller. */
  runnerHooks(onEnd: (event: Extract<RunnerEvent, { type: 'task-end' }>) => Promise<void>): RunnerHooks {
    const own: RunnerHooks = {
      'task-start': (event, about) => {
        const { id, conversation } = event;
        if (conversation !== undefined) this.#running.set(id, { conversation });
        return this.#hooks?.['task-start']?.(event, about);
      },
      'task-left': (event, about) => {
        this.#running.delete(event.id);
        return this.#hooks?.['task-left']?.(event, about);
      },
      'task-end': async (event, about) => {
        this.#running.delete(event.id);
        try {
          await this.#hooks?.['task-end']?.(event, about);
        } finally {
          await onEnd(event);
        }
      },
    };
    // Not a copy: hooks may be methods of an object, or inherited.
    return Object.assign(Object.create(this.#hooks ?? null) as object, own);
  }

  /** The same agent, whose stops are reported. */
  observe(agent: Agent): Agent {
    return {
      ...agent,
      run: (input, given = {}) => {
        const run = this.#running.get(given.id?.replace(/\.\d+$/u, '') ?? '');
        if (run === undefined) return agent.run(input, given);
        Object.assign(run, { runId: given.id, context: given.context });
        return agent.run(input, {
          ...given,
          hooks: {
            ...given.hooks,
            any: (event, { context }) => {
              if (event.type === 'cancel-requested' || event.type === 'level-changed' || event.type === 'call-waiting')
                this.report(run.conversation, event, context);
              return given.hooks?.any?.(event, { context });
            },
          },
        });
      },
    };
  }
}
