import type { HookContext } from './app-context.ts';
import { isPromiseLike } from './wait.ts';
import { warn } from './warn.ts';

/** Listeners by event type. `any` receives every event; `hook-error` receives hooks that failed. */
export type Hooks<Event extends { readonly type: string }> = {
  readonly [Type in Event['type']]?:
    | ((event: Extract<Event, { type: Type }>, about: HookContext) => unknown)
    | undefined;
} & {
  readonly any?: ((event: Event, about: HookContext) => unknown) | undefined;
  readonly 'hook-error'?: ((event: HookError) => unknown) | undefined;
};

/** A hook that threw or rejected. The work that emitted the event continued. */
export interface HookError {
  readonly type: 'hook-error';
  readonly hook: string;
  readonly error: unknown;
}

/**
 * Creates a function that calls several sets of hooks with events. A hook that throws or rejects is reported and
 * affects nothing else.
 *
 * @returns The function to call with each event. It never throws.
 */
export function createHookDispatcher<Event extends { readonly type: string }>(
  ...hooks: readonly (Hooks<Event> | undefined)[]
): (event: Event, about?: HookContext) => void {
  type Given = readonly [event: Event | HookError, about: HookContext];
  type Hook = (...given: Given) => unknown;
  type HooksByName = Readonly<Record<string, Hook | undefined>>;
  const listening = hooks.filter((one) => one !== undefined) as readonly HooksByName[];

  function report(hook: string, error: unknown): void {
    if (hook === 'hook-error') {
      warn(new Error("The 'hook-error' hook itself failed", { cause: error }));
      return;
    }
    const event: HookError = { type: 'hook-error', hook, error };
    let wasReported = false;
    for (const one of listening) wasReported = call(one, 'hook-error', [event, {}]) || wasReported;
    if (!wasReported) warn(new Error(`The '${hook}' hook failed; add a 'hook-error' hook`, { cause: error }));
  }

  /** Returns whether there was a hook to call. */
  function call(one: HooksByName, name: string, given: Given): boolean {
    try {
      const hook = one[name];
      if (hook === undefined) return false;
      const answer = hook(...given);
      if (isPromiseLike(answer)) answer.then(undefined, (error: unknown) => report(name, error));
    } catch (error) {
      report(name, error);
    }
    return true;
  }

  return (event, about = {}) => {
    for (const one of listening) {
      call(one, event.type, [event, about]);
      call(one, 'any', [event, about]);
    }
  };
}

/** The hook for failures. */
export interface ErrorHook {
  readonly 'hook-error'?: ((event: HookError) => unknown) | undefined;
}

/** Calls a function of the caller as if it were a hook. */
function callAsHook(name: string, work: () => unknown, hooks: ErrorHook | undefined): void {
  const onError = hooks?.['hook-error'];
  const own = { [name]: work, ...(onError && { 'hook-error': onError }) } as Hooks<{ type: string }>;
  createHookDispatcher<{ type: string }>(own)({ type: name });
}

/** Reports a failed function of the caller the same way as a failed hook. Never throws. */
export function reportFailure(hooks: ErrorHook | undefined, name: string, error: unknown): void {
  const rethrow = (): never => {
    throw error;
  };
  callAsHook(name, rethrow, hooks);
}

/**
 * Wraps a caller's event listener. If it fails, the failure is reported like a hook's and affects nothing else.
 *
 * @returns The function to call with each event. It never throws.
 */
export function createListener<Event extends { readonly type: string }>(
  name: string,
  listener: (event: Event) => unknown,
  hooks: ErrorHook | undefined,
): (event: Event) => void {
  return (event) => callAsHook(name, () => listener(event), hooks);
}
