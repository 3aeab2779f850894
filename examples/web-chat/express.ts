// node --conditions=@whoa/source examples/web-chat/express.ts
import { toNodeListener } from '@whoa/server';
import express from 'express';
import { chat } from './chat.ts';

const app = express();
// Before any body parser: the chat reads its bodies itself.
app.all(['/api/chat', '/api/chat/*path'], toNodeListener(chat));

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  const { port } = server.address() as { port: number };
  console.log(`http://127.0.0.1:${port}`);
});
