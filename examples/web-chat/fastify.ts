// node --conditions=@whoa/source examples/web-chat/fastify.ts
import { toNodeListener } from '@whoa/server';
import fastify from 'fastify';
import { chat } from './chat.ts';

const app = fastify();
const listener = toNodeListener(chat);
await app.register((scope) => {
  // The chat reads its bodies itself.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null));
  for (const path of ['/api/chat', '/api/chat/*']) {
    scope.all(path, (request, reply) => {
      reply.hijack();
      listener(request.raw, reply.raw);
    });
  }
  return Promise.resolve();
});

console.log(await app.listen({ port: Number(process.env['PORT'] ?? 3000), host: '127.0.0.1' }));
