import type { UIMessage } from '@ai-sdk/react';
import { useCallback, useRef, useState } from 'react';
import type { StopOptions, StopReceipt } from './chat-stop.ts';
import type { StoppableChatTransport } from './stoppable-chat-transport.ts';
import type { TurnCounts } from './use-sending.ts';

interface StopParts<Message extends UIMessage> {
  readonly id: string;
  readonly transport: StoppableChatTransport<Message>;
  readonly stopReading: () => Promise<void>;
  readonly waiting: string | undefined;
  readonly abortInPage: (reason?: string) => void;
  readonly refresh: () => Promise<void>;
}

interface StopControl<Message extends UIMessage> {
  readonly stop: (options?: StopOptions) => Promise<StopReceipt<Message>>;
  readonly isStopping: boolean;
  readonly turns: TurnCounts;
}

/** A `stop` that stops the run, and then shows what the server has. */
export function useStop<Message extends UIMessage>(parts: StopParts<Message>): StopControl<Message> {
  const { id, transport, stopReading, waiting, abortInPage, refresh } = parts;
  const [stopping, setStopping] = useState(0);
  const turns = useRef<TurnCounts>({ sent: 0, stops: 0, stopping: 0 }).current;
  const stop = useCallback(
    async (options?: StopOptions): Promise<StopReceipt<Message>> => {
      const { sent } = turns;
      turns.stopping++;
      turns.stops++;
      setStopping((count) => count + 1);
      try {
        if (options?.scope !== 'background') abortInPage(options?.reason);
        const receipt = await transport.stop(id, { ...options, waiting });
        if (receipt.result === 'given-up') return receipt;
        // Wait for the end of the stream: it contains the results of the calls and the stop report. The server bounds it.
        await transport.waitForEnd(id);
        if (turns.sent === sent) await stopReading();
        if (receipt.result !== 'idle') await refresh();
        return receipt;
      } finally {
        turns.stopping--;
        setStopping((count) => count - 1);
      }
    },
    [id, transport, turns, stopReading, waiting, abortInPage, refresh],
  );
  return { stop, isStopping: stopping > 0, turns };
}
