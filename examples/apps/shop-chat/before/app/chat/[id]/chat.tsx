'use client';

import { useChat } from '@ai-sdk/react';
import {
  lastAssistantMessageIsCompleteWithApprovalResponses as isAnswered,
  lastAssistantMessageIsCompleteWithToolCalls as isComplete,
} from 'ai';
import { type SubmitEvent, useState } from 'react';
import type { ShopMessage } from '@/lib/assistant';
import { Part } from './part';
import { upload } from './upload';

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
  const { messages, sendMessage, stop, status, addToolApprovalResponse } = chat;
  const isBusy = status === 'submitted' || status === 'streaming';
  const send = async (form: HTMLFormElement) => {
    const text = String(new FormData(form).get('text'));
    const files = await upload(form.querySelector<HTMLInputElement>('[type=file]')!.files);
    form.reset();
    await sendMessage({ text, files });
  };
  const submit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setProblem('');
    send(event.currentTarget).catch(report);
  };
  const answer = (question: string, approved: boolean) => void addToolApprovalResponse({ id: question, approved });
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} className={message.role}>
          {message.parts.map((part, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: parts are only added
            <Part key={index} part={part} answer={answer} />
          ))}
        </article>
      ))}
      {problem && <p role="alert">{problem}</p>}
      <form onSubmit={submit}>
        <input name="text" placeholder="Ask about your orders" required />
        <input name="files" type="file" accept="image/png,image/jpeg,image/webp" multiple />
        <button type="submit" disabled={isBusy}>
          Send
        </button>
        {isBusy && (
          <button type="button" onClick={() => void stop()}>
            Stop
          </button>
        )}
      </form>
    </main>
  );
}
