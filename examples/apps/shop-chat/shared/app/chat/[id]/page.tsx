import { loadChat } from '@/lib/chats';
import { currentUser } from '@/lib/login';
import { Chat } from './chat';

export default async function Page({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  const { messages } = loadChat(await currentUser(), id);
  return <Chat id={id} loaded={messages} />;
}
