import type { World } from '../stop/clock.ts';
import { sleep } from '../stop/wait.ts';
import type { Call } from '../tool/call.ts';
import type { Tool } from '../tool/tool.ts';
import type { AssistantMessage } from './message.ts';
import type { Model, ModelError } from './model.ts';
import type { Planner, PlannerContext } from './planner.ts';
import { describeTools, prepareMessages } from './prepare.ts';
import { ReplyError, streamReply } from './turn.ts';

/** How patient a run is with its model. */
export interface Patience {
  /** How often a request is sent at most. */
  readonly attemptsMax?: number;
  /** The first wait between two attempts; it doubles each time, with some chance in it. */
  readonly backoffMs?: number;
  /** No wait is longer; a provider that asks for more is not waited for. */
  readonly backoffMsMax?: number;
  /** A provider that sends nothing for this long has stopped answering. */
  readonly idleMs?: number;
}

export const PATIENCE: Required<Patience> = { attemptsMax: 4, backoffMs: 500, backoffMsMax: 60_000, idleMs: 120_000 };

export interface ModelPlannerOptions {
  readonly model: Model;
  readonly instructions?: string | undefined;
  readonly tools: readonly Tool[];
  readonly patience?: Patience | undefined;
  readonly world: World;
}

/** The planner that asks a model. */
export function createModelPlanner(options: ModelPlannerOptions): Planner {
  const { model, instructions, world } = options;
  const patience = { ...PATIENCE, ...options.patience };
  const tools = describeTools(options.tools);
  return {
    async next(history, context) {
      const request = {
        messages: prepareMessages(history),
        tools,
        ...(instructions !== undefined && { instructions }),
      };
      for (let attempt = 1; ; attempt++) {
        try {
          const message = await streamReply(model, request, { ...context, idleMs: patience.idleMs });
          return { message, calls: callsOf(message) };
        } catch (error) {
          await waitToRetry(error, attempt, { ...context, patience, world });
        }
      }
    },
  };
}

interface Retries {
  readonly patience: Required<Patience>;
  readonly world: World;
}

/** Waits until the request may be sent again; throws the error if that would not help. */
async function waitToRetry(error: unknown, attempt: number, context: PlannerContext & Retries): Promise<void> {
  const delayMs = delayBefore(error, attempt, context);
  if (delayMs === undefined) throw error;
  context.tell({ type: 'turn-retry', attempt, delayMs, error: (error as Error).message });
  await sleep(delayMs, { clock: context.world.clock, token: context.token });
}

/**
 * How long to wait before the next attempt; `undefined` if there should be none. Nobody may have seen anything yet: words
 * that were shown are not said twice.
 */
function delayBefore(error: unknown, attempt: number, { patience, world }: Retries): number | undefined {
  if (attempt >= patience.attemptsMax || !(error instanceof ReplyError) || error.hasShown) return undefined;
  const { cause } = error;
  if (!isModelError(cause) || !cause.isRetryable) return undefined;
  if (cause.retryAfterMs !== undefined)
    return cause.retryAfterMs <= patience.backoffMsMax ? cause.retryAfterMs : undefined;
  const grown = Math.min(patience.backoffMs * 2 ** (attempt - 1), patience.backoffMsMax);
  return Math.round(grown * (0.5 + world.random() / 2));
}

// By its code and not by its class: an adapter may have been built against another copy of this package.
function isModelError(error: unknown): error is ModelError {
  return error instanceof Error && 'code' in error && error.code === 'MODEL_ERROR';
}

function callsOf(message: AssistantMessage): Call[] {
  return message.content.flatMap((part) =>
    part.type === 'call' ? [{ id: part.callId, tool: part.tool, input: part.input }] : [],
  );
}
