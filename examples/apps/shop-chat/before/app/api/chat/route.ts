import { consumeStream, convertToModelMessages, generateId, isStepCount, streamText } from 'ai';
import { assistantFor, type ShopMessage } from '@/lib/assistant';
import { loadChat, saveChat } from '@/lib/chats';
import { findUser } from '@/lib/login';

export async function POST(request: Request): Promise<Response> {
  const user = findUser(request);
  if (user === undefined) return new Response('Log in first', { status: 401 });
  const { id, messages } = (await request.json()) as { id: string; messages: ShopMessage[] };
  const { version } = loadChat(user, id);
  const result = streamText({
    ...assistantFor(user),
    messages: await convertToModelMessages(messages),
    stopWhen: isStepCount(20),
  });
  return result.toUIMessageStreamResponse({
    // A closed tab must not lose the reply, so it is also read here, to its end.
    consumeSseStream: consumeStream,
    originalMessages: messages,
    generateMessageId: generateId,
    onEnd(end) {
      const saved = saveChat(user, id, { messages: end.messages, version });
      if (saved === undefined) console.warn(`A reply of chat ${id} was not saved: another tab was faster`);
    },
  });
}
