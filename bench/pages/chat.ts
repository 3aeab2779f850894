// Two chats, one with the SDK's own `useChat` and a plain route, one with ours. Each measures itself, as a person sees it.
import { useChat } from '@ai-sdk/react';
import { useStoppableChat } from '@whoa/server/client';
import { DefaultChatTransport, type UIMessage } from 'ai';
import { createElement as h, useEffect } from 'react';
import { createRoot } from 'react-dom/client';

/** Times of a turn: from the message to its first word, and from Stop to an idle page. */
export interface TurnTimes {
  readonly firstWordMs: number;
  readonly stopMs: number;
}

export interface BenchWindow {
  measure(which: 'ours' | 'plain', words: number): Promise<TurnTimes>;
}

interface Shown {
  readonly messages: readonly UIMessage[];
  readonly status: string;
  readonly isStopping?: boolean;
  sendMessage(message: { text: string }): Promise<void>;
  stop(): Promise<unknown>;
}

const chats: Partial<Record<'ours' | 'plain', Shown>> = {};
const CHAT = `bench-${Date.now()}`;
const watchers = new Set<() => void>();
const plain = new DefaultChatTransport({ api: '/plain' });

function useShown(name: 'ours' | 'plain', chat: Shown): null {
  chats[name] = chat;
  useEffect(() => {
    for (const watch of watchers) watch();
  });
  return null;
}

function Ours(): null {
  return useShown('ours', useStoppableChat({ id: CHAT, api: '/api/chat' }) as Shown);
}

function Plain(): null {
  return useShown('plain', useChat({ id: 'plain', transport: plain }) as Shown);
}

/** Resolves when a page was drawn for which it is so. */
function until(isSo: () => boolean): Promise<number> {
  return new Promise((resolve) => {
    const watch = (): void => {
      if (!isSo()) return;
      watchers.delete(watch);
      resolve(performance.now());
    };
    watchers.add(watch);
    watch();
  });
}

const countWords = ({ messages }: Shown): number => {
  const last = messages.at(-1);
  if (last?.role !== 'assistant') return 0;
  return (
    last.parts
      .map((part) => (part.type === 'text' ? part.text : ''))
      .join('')
      .split(' ').length - 1
  );
};

(window as unknown as BenchWindow).measure = async (which, words) => {
  const chat = (): Shown => chats[which]!;
  const from = performance.now();
  const turn = chat().sendMessage({ text: 'Go' });
  const firstWordAt = await until(() => countWords(chat()) > 0);
  await until(() => countWords(chat()) >= words);
  const stopAt = performance.now();
  const stopped = chat().stop();
  const settledAt = await until(() => chat().status === 'ready' && chat().isStopping !== true);
  await Promise.all([turn, stopped]);
  return { firstWordMs: firstWordAt - from, stopMs: settledAt - stopAt };
};

createRoot(document.getElementById('root')!).render([h(Ours, { key: 'ours' }), h(Plain, { key: 'plain' })]);
