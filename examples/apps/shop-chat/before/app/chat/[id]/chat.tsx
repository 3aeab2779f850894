'use client';

import { useChat } from '@ai-sdk/react';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered,
  lastAssistantMessageIsCompleteWithToolCalls as isComplete,
} from 'ai';
import { useState } from 'react';
import type { ShopMessage } from '@/lib/assistant';
import { Composer } from './composer';
import { Part } from './part';

export function Chat({ id, loaded }: { id: string; loaded: ShopMessage[] }) {
  const [problem, setProblem] = useState('');
  const report = (error: unknown) => setProblem(String(error));
  const chat = useChat<ShopMessage>({
    id,
    messages: loaded,
    sendAutomaticallyWhen: (now) => isComplete(now) || isAnswered(now),
    onToolCall({ toolCall }) {
      if (toolCall.dynamic || toolCall.toolName !== 'time_zone') return;
      const output = Intl.DateTimeFormat().resolvedOptions().timeZone;
      // Not awaited: the reply continues only after this function has returned.
      void chat.addToolOutput({ tool: 'time_zone', toolCallId: toolCall.toolCallId, output });
    },
    onError: report,
  });
  const { messages, sendMessage, regenerate, stop, status, addToolApprovalResponse } = chat;
  const isBusy = status === 'submitted' || status === 'streaming';
  const answer = (question: string, approved: boolean) => void addToolApprovalResponse({ id: question, approved });
  const send: typeof sendMessage = (message) => {
    setProblem('');
    return sendMessage(message);
  };
  return (
    <main>
      <header>
        <h1>Shop</h1>
        <a href="/">All chats</a>
      </header>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added
            <Part key={index} part={part} answer={answer} />
          ))}
        </article>
      ))}
      {problem && <p role="alert">{problem}</p>}
      {!isBusy && messages.at(-1)?.role === 'assistant' && (
        <button className="again" type="button" onClick={() => void regenerate()}>
          Answer again
        </button>
      )}
      <Composer send={send} isBusy={isBusy} canStop={isBusy} stop={() => void stop()} report={report} />
    </main>
  );
}
