import { isPromiseLike } from './wait.ts';

/** Listeners by event type, typed from a union of events; `any` hears them all, `hook-error` of hooks that failed. */
export type Hooks<Event extends { readonly type: string }> = {
  readonly [Type in Event['type']]?: (event: Extract<Event, { type: Type }>) => unknown;
} & { readonly any?: (event: Event) => unknown; readonly 'hook-error'?: (event: HookError) => unknown };

/** A hook that threw or rejected. The event it was told about went on without it. */
export interface HookError {
  readonly type: 'hook-error';
  readonly hook: string;
  readonly error: unknown;
}

/** Tells several sets of hooks about events. A hook that throws, or rejects later, harms nobody and is reported. */
export function createTeller<Event extends { readonly type: string }>(
  ...hooks: readonly (Hooks<Event> | undefined)[]
): (event: Event) => void {
  type Hook = (event: Event | HookError) => unknown;
  type HooksByName = Readonly<Record<string, Hook | undefined>>;
  const listening = hooks.filter((one) => one !== undefined) as readonly HooksByName[];

  function report(hook: string, error: unknown): void {
    if (hook === 'hook-error') {
      process.emitWarning(new Error("The 'hook-error' hook itself failed", { cause: error }));
      return;
    }
    const event: HookError = { type: 'hook-error', hook, error };
    const heard = listening.some((one) => one['hook-error'] !== undefined);
    if (!heard) process.emitWarning(new Error(`The '${hook}' hook failed; add a 'hook-error' hook`, { cause: error }));
    for (const one of listening) call(one['hook-error'], event, 'hook-error');
  }

  function call(hook: Hook | undefined, event: Event | HookError, name: string): void {
    if (hook === undefined) return;
    try {
      const answer = hook(event);
      if (isPromiseLike(answer)) answer.then(undefined, (error: unknown) => report(name, error));
    } catch (error) {
      report(name, error);
    }
  }

  return (event) => {
    for (const one of listening) {
      call(one[event.type], event, event.type);
      call(one['any'], event, 'any');
    }
  };
}
