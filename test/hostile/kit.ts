// The parts of a scenario. They are harmless until a hostile value replaces one of them.

import type { ToolContext } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';

export interface Kit {
  /** The end of the hostile tool. */
  execute: (context: ToolContext) => unknown;
  /** The start of the hostile tool, before it waits. */
  begin: (context: ToolContext) => unknown;
  /** The call that the model sends. */
  call: { callId: unknown; tool: unknown; input: unknown };
  /** Parts the model sends before its calls. */
  parts: () => readonly unknown[];
  schema: InputSchema;
  /** More about the tool, the agent (or runtime, or guard), the run, the conversation and the message. */
  tool: Record<string, unknown>;
  agent: Record<string, unknown>;
  run: Record<string, unknown>;
  conversations: Record<string, unknown>;
  message: Record<string, unknown>;
  said: unknown;
  reason: unknown;
  cancel: Record<string, unknown>;
  /** Instead of all options of a run, or of a cancel. */
  allOfRun: (() => unknown) | undefined;
  allOfCancel: (() => unknown) | undefined;
  steer: (() => unknown) | undefined;
  /** Returns the first turn of a custom planner. */
  plan: (() => unknown) | undefined;
  /** Returns an event that the planner emits before its turn. */
  tell: (() => unknown) | undefined;
  /** Returns the reason to abort the signal with, if a signal stops the work. */
  abort: (() => unknown) | undefined;
  /** Returns the arguments of a `cancelCall` before everything is stopped. */
  cancelCall: (() => readonly unknown[]) | undefined;
  /** More about a loop of the AI SDK's. */
  aiSdk: Record<string, unknown>;
  hooks: Record<string, (event: unknown) => unknown>;
  clock: { now?: (now: number) => unknown; setTimer?: () => unknown };
}

export const anything: InputSchema = {
  '~standard': { version: 1, vendor: 'hostile', validate: (value) => ({ value }) },
};

export function createKit(): Kit {
  return {
    execute: () => ({ content: 'done', details: { fine: true } }),
    begin: () => undefined,
    call: { callId: 'hostile', tool: 'hostile', input: {} },
    parts: () => [],
    schema: anything,
    tool: {},
    agent: {},
    run: {},
    conversations: {},
    message: {},
    said: 'do it',
    reason: { kind: 'user', message: 'enough' },
    cancel: {},
    allOfRun: undefined,
    allOfCancel: undefined,
    steer: undefined,
    plan: undefined,
    tell: undefined,
    abort: undefined,
    cancelCall: undefined,
    aiSdk: {},
    hooks: {},
    clock: {},
  };
}
