// node --conditions=@whoa/source examples/web-chat/hono.ts
import { listen } from '@whoa/server';
import { Hono } from 'hono';
import { chat } from './chat.ts';

const app = new Hono();
app.all('/api/chat/*', (c) => chat.fetch(c.req.raw));
app.all('/api/chat', (c) => chat.fetch(c.req.raw));

const { url } = await listen(app, { port: Number(process.env['PORT'] ?? 3000) });
console.log(url);
