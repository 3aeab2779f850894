import type { Change } from '../../plant.ts';

/** A bug that a campaign must find. Its files are below `packages`. */
export interface PlantedBug {
  readonly name: string;
  readonly campaign: 'runs' | 'conversations' | 'own-loops';
  readonly changes: readonly Change[];
}

export const plantedBugs: readonly PlantedBug[] = [
  {
    name: 'a call that its own start hook cancelled runs',
    campaign: 'runs',
    changes: [
      {
        file: 'core/src/stop/bounded/bounded.ts',
        find: 'const stop = own.reason ?? token.reason;',
        replace: "const stop = own.reason ?? (token.level === 'drain' ? undefined : token.reason);",
      },
    ],
  },
  {
    name: 'a receipt is read before the hooks have run',
    campaign: 'runs',
    changes: [
      {
        file: 'core/src/run/run.ts',
        find: "return now.result === 'too-late' ? receipt : { ...now, result: receipt.result };",
        replace: 'return now.result === receipt.result ? now : receipt;',
      },
    ],
  },
  {
    name: 'a kill waits for a deaf model stream',
    campaign: 'runs',
    changes: [
      {
        file: 'core/src/run/report/leftovers.ts',
        find: "if (leftMs <= 0 || token.level === 'kill') continue;",
        replace: 'if (leftMs <= 0) continue;',
      },
      {
        file: 'core/src/run/report/leftovers.ts',
        find: "const limit = token.child('leftovers');",
        replace: "const limit = token.child({ name: 'leftovers', inheritFrom: 'nothing' });",
      },
    ],
  },
  {
    name: 'a streaming tool is read to its end',
    campaign: 'runs',
    changes: [
      {
        file: 'ai-sdk/src/tools/ai-sdk-tool.ts',
        find: 'if (signal.aborted) throw createInterruptedError(token, toToolResult(last));',
        replace: 'if (!signal) throw createInterruptedError(token, toToolResult(last));',
      },
    ],
  },
  {
    name: 'calls of a wave start after a cancel',
    campaign: 'runs',
    changes: [
      { file: 'core/src/tool/runtime.ts', find: 'if (scope.token.isCancelled) return;', replace: '' },
      { file: 'core/src/tool/call/start.ts', find: 'if (call.stopped) return call.endUnstarted();', replace: '' },
      {
        file: 'core/src/stop/bounded/bounded.ts',
        find: "if (token.isCancelled) return work.onEnd({ state: 'not-started', reason: token.reason! }) as Awaited<Meaning>;",
        replace: '',
      },
      {
        file: 'core/src/stop/bounded/bounded.ts',
        find: 'const stop = own.reason ?? token.reason;',
        replace: 'const stop = own.reason;',
      },
    ],
  },
  {
    name: 'undo runs in the order of the calls',
    campaign: 'runs',
    changes: [{ file: 'core/src/run/undo.ts', find: 'b.order - a.order', replace: 'a.order - b.order' }],
  },
  {
    name: 'a call that must finish is interrupted',
    campaign: 'runs',
    changes: [
      { file: 'core/src/stop/token/shield.ts', find: "inheritFrom: 'nothing'", replace: "inheritFrom: 'abort'" },
    ],
  },
  {
    name: 'a conversation whose message is being received is idle',
    campaign: 'conversations',
    changes: [
      {
        file: 'core/src/conversation/conversation.ts',
        find: 'return this.#pending.size === 0 && this.#state.running === undefined;',
        replace:
          'return this.#state.seen.length === 0 || (this.#pending.size === 0 && this.#state.running === undefined);',
      },
    ],
  },
  {
    name: 'a cancel while a message is received is forgotten',
    campaign: 'conversations',
    changes: [
      {
        file: 'core/src/conversation/conversation.ts',
        find: 'if (token.isCancelled || cancels !== this.#cancels || this.#setup.isClosed())',
        replace: 'if (token.isCancelled || cancels > this.#cancels)',
      },
    ],
  },
  {
    name: 'arguments that are not a JSON object reach the provider',
    campaign: 'own-loops',
    changes: [
      {
        file: 'ai-sdk/src/messages/close-open-calls.ts',
        find: 'const input = site && this.#isNext(site) ? part.input : inputObject(part.input);',
        replace: 'const { input } = part;',
      },
    ],
  },
  {
    name: 'a result belongs to any call with its id',
    campaign: 'own-loops',
    changes: [
      {
        file: 'ai-sdk/src/turn/call-sites.ts',
        find: "type === 'tool-result' && !ran.has(toolCallId)",
        replace: "type === 'tool-result' && ran.size >= 0 && toolCallId !== ''",
      },
    ],
  },
];
