import { randomUUID } from 'node:crypto';
import type { BaseEvent } from '@ag-ui/client';
import type { Adapter, TurnEnd } from '../adapter.ts';
import type { TurnLog } from '../turn-log.ts';
import { loadLibrary } from './load-library.ts';
import { createStreamAdapter, type StreamClient, type StreamServerOptions } from './streams.ts';

/**
 * Checks a server that supports AG-UI, by the official `HttpAgent`.
 *
 * @returns The adapter, for `runChecks`.
 */
export function createAgUiAdapter(options: StreamServerOptions): Adapter {
  return createStreamAdapter('ag-ui', load, options);
}

async function load({ url, headers }: { url: string; headers: Record<string, string> }) {
  const { HttpAgent } = await loadLibrary('@ag-ui/client', () => import('@ag-ui/client'));
  return (): StreamClient => {
    const id = randomUUID();
    const agent = new HttpAgent({ url, headers, threadId: id, fetch: fetchToTheEnd });
    return {
      id,
      async send(prompt, turn, signal) {
        agent.addMessage({ id: randomUUID(), role: 'user', content: prompt });
        const abortController = new AbortController();
        signal.addEventListener('abort', () => abortController.abort(), { once: true });
        const onEvent = ({ event }: { event: BaseEvent }): void => recordEvent(turn, event);
        await agent.runAgent({ runId: randomUUID(), abortController }, { onEvent });
        if (!turn.hasEnded) turn.end('gone', 'the stream ended without RUN_FINISHED or RUN_ERROR');
      },
    };
  };
}

/** Makes a response that breaks off one that ends: the official client prints the error, and rejects its own promise. */
async function fetchToTheEnd(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await reader?.read().catch(() => undefined);
      if (next?.value === undefined) controller.close();
      else controller.enqueue(next.value);
    },
    cancel: (reason) => reader?.cancel(reason),
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

function recordEvent(turn: TurnLog, event: BaseEvent): void {
  const { type, toolCallId: id = '', delta = '' } = event as BaseEvent & { toolCallId?: string; delta?: string };
  if (type === 'TEXT_MESSAGE_CONTENT') turn.record({ what: 'text', text: delta });
  else if (type === 'TOOL_CALL_START') turn.record({ what: 'call', id, isOpen: true, detail: type });
  else if (type === 'TOOL_CALL_END' || type === 'TOOL_CALL_RESULT')
    turn.record({ what: 'call', id, isOpen: false, detail: type });
  else if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') turn.record({ what: 'end', end: toTurnEnd(event) });
  else turn.record({ what: 'other', detail: type });
}

function toTurnEnd(event: BaseEvent): TurnEnd {
  const { type, outcome, message } = event as BaseEvent & { outcome?: { type: string }; message?: string };
  if (type === 'RUN_ERROR') return { kind: 'error', detail: `RUN_ERROR: ${message}` };
  const detail = `RUN_FINISHED, outcome ${outcome?.type ?? 'absent'}`;
  return { kind: outcome?.type === 'cancelled' ? 'cancelled' : 'completed', detail };
}
