import { program, type Subject } from '../subject.ts';

export const aiSdkChat: Subject = {
  name: 'ai-sdk-chat',
  title: 'AI SDK chat route',
  protocol: 'chat',
  packages: {
    ai: '7.0.169',
    '@ai-sdk/openai-compatible': '3.0.90',
    '@hono/node-server': '2.1.6',
    hono: '4.13.17',
    zod: '4.6.7',
  },
  about:
    'The documented route with `abortSignal: req.signal`; its tool ends its process group when its signal fires. A client stops it by closing its connection, so it sees no end. The documented way to resume streams needs Redis and your own stop route; we have not checked it.',
  upToTheProgram: ['left-detached', 'orphans-sigterm', 'orphans-sigkill'],
  fairly:
    'With `ignoreIncompleteToolCalls`, which is documented for subagents; without it the next prompt after a cancelled call fails.',
  page: '`docs/06-advanced/02-stopping-streams.mdx` of the package',
  program: 'ai-sdk-chat.mjs',
  command: (location) => [process.execPath, program(location), '{port}', location.provider],
  url: 'http://127.0.0.1:{port}/api/chat',
};
