import { type World, worldRule } from '../../stop/clock.ts';
import { count, group, pauseMs, type Rules, readSettings, required, text, timeLimitMs } from '../../stop/settings.ts';
import { sleep } from '../../stop/wait.ts';
import type { Call } from '../../tool/call/call.ts';
import { type Tool, toolsRule } from '../../tool/tool.ts';
import { type AssistantMessage, addUsage, NO_USAGE, type Usage } from '../history/message.ts';
import { describeTools, prepareMessages } from '../history/prepare.ts';
import { countBytes } from '../spending/estimate.ts';
import type { ModelIds } from '../spending/price.ts';
import { type Model, type ModelError, modelRule } from './model.ts';
import { PAID, type PaidContext, type PlannedRequests, type Planner, REQUESTS } from './planner.ts';
import { ReplyError, streamReply } from './stream-reply.ts';

/** How often and how long a failed model request is retried. */
export interface RetryOptions {
  /** How often a request is sent at most. */
  readonly maxAttempts?: number | undefined;
  /** The first wait between two attempts. It doubles each time, with random jitter. */
  readonly backoffMs?: number | undefined;
  /** The longest wait. If a provider asks for more, the request fails. */
  readonly maxBackoffMs?: number | undefined;
  /** If a provider sends nothing for this long, the attempt fails. */
  readonly idleTimeoutMs?: number | undefined;
}

const DEFAULT_RETRY = {
  maxAttempts: 4,
  backoffMs: 500,
  maxBackoffMs: 60_000,
  idleTimeoutMs: 120_000,
};

export interface ModelPlannerOptions {
  readonly model: Model;
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly retry?: RetryOptions | undefined;
  readonly world: World;
}

/** The settings of an agent that uses a model. */
export const MODEL_RULES: Rules<Pick<ModelPlannerOptions, 'model' | 'instructions' | 'retry'>> = {
  model: modelRule,
  instructions: text,
  retry: group<RetryOptions>({
    maxAttempts: count(),
    backoffMs: pauseMs,
    maxBackoffMs: timeLimitMs,
    idleTimeoutMs: timeLimitMs,
  }),
};

/** Creates the planner that asks a model. */
export function createModelPlanner(given: ModelPlannerOptions): Planner & { readonly [REQUESTS]: PlannedRequests } {
  const options = readSettings<ModelPlannerOptions>(given, {
    ...MODEL_RULES,
    model: required(modelRule),
    tools: required(toolsRule),
    world: required(worldRule),
  });
  const { model, instructions, world } = options;
  const retry: Retries['retry'] = { ...DEFAULT_RETRY, ...(options.retry as Partial<Retries['retry']> | undefined) };
  const tools = describeTools(options.tools);
  return {
    get [REQUESTS]() {
      const fixedBytes = countBytes([instructions, tools]);
      return { ids: toModelIds(model), fixedBytes, maxOutputTokens: model.maxOutputTokens };
    },
    async next(history, context: PaidContext) {
      const paid = context[PAID];
      const request = {
        messages: prepareMessages(history),
        tools,
        ...(instructions !== undefined && { instructions: instructions.toWellFormed() }),
      };
      let spent: Usage | undefined;
      for (let attempt = 1; ; attempt++) {
        try {
          const replied = await streamReply(model, request, { ...context, idleTimeoutMs: retry.idleTimeoutMs });
          paid?.settle(replied.usage);
          const message = spending(replied, spent);
          return { message, calls: findCalls(message) };
        } catch (error) {
          const failed = error as ReplyError;
          paid?.settle(wasRefused(failed) ? 'unsent' : failed.partial.usage);
          const partial = spending(failed.partial, spent);
          if (failed.hasStarted) spent = partial.usage;
          const mayRetry = await waitToRetry(failed, attempt, { ...context, retry, world });
          if (mayRetry) continue;
          // Cancelled between two attempts: keep the usage of the earlier ones.
          if (context.token.isCancelled) return { message: spending(NOTHING_SAID, spent), calls: [] };
          const { cause, hasShown, hasStarted } = failed;
          throw new ReplyError(cause, { partial, hasShown, hasStarted });
        }
      }
    },
  };
}

/** The ids of a model that a price may be given for. */
function toModelIds({ name, source }: Model): ModelIds {
  return source?.model === undefined ? [name] : [name, source.model];
}

/** A provider that refuses a request with a status has charged nothing. One that breaks off may have. */
function wasRefused({ cause, hasStarted }: ReplyError): boolean {
  return !hasStarted && isModelError(cause) && cause.status !== undefined;
}

const NOTHING_SAID: AssistantMessage = { role: 'assistant', content: [], stopReason: 'aborted' };

/** Returns the message with the usage of earlier attempts added. */
function spending(message: AssistantMessage, before: Usage | undefined): AssistantMessage {
  return before === undefined ? message : { ...message, usage: addUsage(before, message.usage ?? NO_USAGE) };
}

interface Retries {
  readonly retry: typeof DEFAULT_RETRY;
  readonly world: World;
}

/** Waits until the request may be sent again. Returns whether it may. */
async function waitToRetry(error: ReplyError, attempt: number, context: PaidContext & Retries): Promise<boolean> {
  const { token, world, emit } = context;
  const delayMs = delayBefore(error, attempt, context);
  if (delayMs === undefined) return false;
  emit({ type: 'turn-retry', attempt, delayMs, error: error.message });
  try {
    await sleep(delayMs, { clock: world.clock, token });
    await context[PAID]?.again();
    return true;
  } catch {
    return false;
  }
}

/** Returns how long to wait before the next attempt; `undefined` for none. Text that was shown is not shown twice. */
function delayBefore(error: ReplyError, attempt: number, { retry, world }: Retries): number | undefined {
  if (attempt >= retry.maxAttempts || error.hasShown) return undefined;
  const { cause } = error;
  if (!isModelError(cause) || !cause.isRetryable) return undefined;
  if (cause.retryAfterMs !== undefined)
    return cause.retryAfterMs <= retry.maxBackoffMs ? cause.retryAfterMs : undefined;
  const grown = Math.min(retry.backoffMs * 2 ** (attempt - 1), retry.maxBackoffMs);
  return Math.round(grown * (0.5 + world.random() / 2));
}

// Check the code, not the class: an adapter may have been built against another copy of this package.
function isModelError(error: unknown): error is ModelError {
  return error instanceof Error && 'code' in error && error.code === 'MODEL_ERROR';
}

function findCalls({ content }: AssistantMessage): Call[] {
  return content.filter((part) => part.type === 'call').map(({ callId: id, tool, input }) => ({ id, tool, input }));
}
