// The page in Vue: the AI SDK's own composable, with our transport.
import { useChat } from '@ai-sdk/vue';
import { StoppableChatTransport, stopChat, watchChat } from '@whoa/server/transport';
import type { UIMessage } from 'ai';
import { createApp, h, onMounted, reactive, ref } from 'vue';

const id = location.hash.slice(1) || crypto.randomUUID();
location.hash = id;
const messages = (await (await fetch(`/api/chat/${id}/messages`)).json()) as UIMessage[];
const transport = new StoppableChatTransport({ api: '/api/chat' });

createApp({
  setup() {
    // biome-ignore lint/correctness/useHookAtTopLevel: it is Vue's, not React's
    const chat = reactive(useChat({ id, transport, messages }));
    // Reads the reply in progress, if there is one, and shows what other tabs and devices do.
    onMounted(() => watchChat(chat, transport));
    const text = ref('');
    const send = () => chat.sendMessage({ text: text.value });
    const type = (event: Event) => (text.value = (event.target as HTMLInputElement).value);
    return () =>
      h('main', [
        chat.messages.map((message) =>
          h('article', { key: message.id, class: message.role }, [
            message.parts.map((part) => (part.type === 'text' ? h('p', part.text) : undefined)),
            message.parts.some((part) => part.type === 'data-stop-report') ? h('footer', 'Stopped.') : undefined,
          ]),
        ),
        h('input', { value: text.value, onInput: type }),
        chat.status === 'submitted' || chat.status === 'streaming'
          ? h('button', { onClick: () => stopChat(chat, transport) }, 'Stop')
          : h('button', { onClick: send }, 'Send'),
      ]);
  },
}).mount('#root');
