import { program, type Subject } from '../subject.ts';

export const a2aSdk: Subject = {
  name: 'a2a-sdk',
  title: 'A2A SDK server',
  protocol: 'a2a',
  packages: {
    '@a2a-js/sdk': '1.3.0',
    ai: '7.0.169',
    '@ai-sdk/openai-compatible': '3.0.90',
    express: '5.3.0',
    zod: '4.6.7',
  },
  about:
    'The SDK’s `DefaultRequestHandler` and `InMemoryTaskStore` with an executor like its sample `cancellable-agent`, which aborts the model and the tool. The executor is ours; the checks are about what the SDK does around it.',
  upToTheProgram: ['left-detached', 'orphans-sigterm', 'orphans-sigkill'],
  page: 'README of the package, and its sample `cancellable-agent`',
  program: 'a2a.mjs',
  command: (location) => [process.execPath, program(location), '{port}', location.provider],
  url: 'http://127.0.0.1:{port}/',
};
