import type { AddressInfo } from 'node:net';
import { toNodeListener } from '@whoa/server';
import express from 'express';
import { chat } from './chat.ts';
import { logIn } from './login.ts';

const app = express();
app.all(['/api/chat', '/api/chat/*path'], toNodeListener(chat)); // before any body parser
app.post('/login', express.urlencoded(), (request, response) => {
  const { user } = request.body as { user: string };
  response.set('set-cookie', logIn(user)).redirect('/');
});
app.use(express.static(process.env['PAGE'] ?? 'dist'));

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
