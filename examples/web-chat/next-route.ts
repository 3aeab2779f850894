// app/api/chat/[[...path]]/route.ts
import { chat } from './chat.ts';

export const { GET, POST, DELETE } = chat;
