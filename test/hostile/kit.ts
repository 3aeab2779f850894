// What a scene is built of. It is harmless until something hostile is put in its place.

import type { ToolContext } from '@whoa/core';
import type { InputSchema } from '@whoa/core/embed';

export interface Kit {
  /** What the hostile tool does in the end. */
  execute: (context: ToolContext) => unknown;
  /** Before it waits for anything. */
  begin: (context: ToolContext) => unknown;
  /** What the model sends as its call. */
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
  /** What a planner of the user's own returns for its first turn. */
  plan: (() => unknown) | undefined;
  /** What that planner tells before. */
  tell: (() => unknown) | undefined;
  /** What the signal is aborted with, where it is a signal that stops the work. */
  abort: (() => unknown) | undefined;
  /** What `cancelCall` is called with before all is stopped. */
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
