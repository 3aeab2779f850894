// The same chat without `useChat`: over AG-UI by its official client, and over the task API by ours.
import { HttpAgent, runHttpRequest, transformHttpEventStream } from '@ag-ui/client';
import type { RunAgentInput } from '@ag-ui/core';
import type { UIMessage } from '@ai-sdk/react';
import { createTaskClient } from '@whoa/server/task-client';
import { useEffect, useMemo, useState } from 'react';

/** What a page shows of a chat, and does with it. */
export interface OtherChat {
  readonly messages: readonly UIMessage[];
  readonly status: 'ready' | 'streaming';
  readonly sendMessage: (message: { readonly text: string }) => Promise<void>;
  readonly stop: () => Promise<void>;
}

type OnFinish = (end: { readonly isAbort: boolean; readonly isError: boolean }) => void;

const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

const shown = (id: string, role: UIMessage['role'], text: string): UIMessage => ({
  id,
  role,
  parts: [{ type: 'text', text }],
});

class ThreadAgent extends HttpAgent {
  joined: Response | undefined;

  protected override connect(_: RunAgentInput) {
    return transformHttpEventStream(runHttpRequest(() => Promise.resolve(this.joined!)));
  }
}

export function useAgUiChat(threadId: string, onFinish: OnFinish): OtherChat {
  const [messages, setMessages] = useState<readonly UIMessage[]>([]);
  const [status, setStatus] = useState<OtherChat['status']>('ready');
  const agent = useMemo(() => new ThreadAgent({ url: '/api/ag-ui', threadId }), [threadId]);
  useEffect(() => {
    const { unsubscribe } = agent.subscribe({
      onRunStartedEvent: () => setStatus('streaming'),
      onMessagesChanged: ({ messages: all }) =>
        setMessages(
          all.flatMap(({ id, role, content }) =>
            (role === 'user' || role === 'assistant') && content ? [shown(id, role, content as string)] : [],
          ),
        ),
      onRunFinishedEvent: ({ outcome }) => {
        onFinish({ isAbort: outcome === 'cancelled', isError: false });
        setStatus('ready');
      },
    });
    const join = async (): Promise<void> => {
      agent.joined = await fetch(`/api/ag-ui/${threadId}/connect`);
      if (agent.joined.status === 200) await agent.connectAgent();
    };
    join().catch(() => onFinish({ isAbort: false, isError: true }));
    return unsubscribe;
  }, [agent, threadId, onFinish]);
  return {
    messages,
    status,
    async sendMessage({ text }) {
      agent.addMessage({ id: crypto.randomUUID(), role: 'user', content: text });
      await agent.runAgent();
    },
    stop: async () => void (await post(`/api/ag-ui/${threadId}/stop`, {})),
  };
}

export function useTaskChat(conversation: string, onFinish: OnFinish): OtherChat {
  const client = useMemo(() => createTaskClient({ url: location.origin }), []);
  const [replies, setReplies] = useState<ReadonlyMap<string, string>>(new Map());
  const [running, setRunning] = useState<readonly string[]>([]);
  const follow = useMemo(
    () =>
      async (id: string): Promise<void> => {
        setRunning((all) => [...all, id]);
        // Words come as drafts, and the end of their turn holds all of them.
        let [whole, draft] = ['', ''];
        for await (const seen of client.follow(id)) {
          if (seen.type === 'end') onFinish({ isAbort: seen.task.status === 'cancelled', isError: false });
          else if (seen.type === 'taken-back') draft = '';
          else if (seen.event.type === 'text') draft += seen.event.text;
          else if (seen.event.type === 'turn-end') {
            whole += seen.event.message.content.map((part) => (part.type === 'text' ? part.text : '')).join('');
            draft = '';
          }
          setReplies((all) => new Map(all).set(id, whole + draft));
        }
        setRunning((all) => all.filter((one) => one !== id));
      },
    [client, onFinish],
  );
  useEffect(() => {
    const open = async (): Promise<void> => {
      const { tasks } = await client.list({ conversation });
      await Promise.all(tasks.toReversed().map(({ id }) => follow(id)));
    };
    open().catch(() => onFinish({ isAbort: false, isError: true }));
  }, [client, conversation, follow, onFinish]);
  return {
    messages: [...replies].map(([id, text]) => shown(id, 'assistant', text)),
    status: running.length > 0 ? 'streaming' : 'ready',
    async sendMessage({ text }) {
      const created = await client.create({ agent: 'tester', input: text, conversation });
      if ('task' in created) await follow(created.task.id);
    },
    stop: async () => void (await client.cancelConversation(conversation, { mode: 'now' })),
  };
}
