import { program, type Subject } from '../subject.ts';

export const copilotKit: Subject = {
  name: 'copilotkit',
  title: 'CopilotKit runtime',
  protocol: 'ag-ui',
  packages: { '@copilotkit/runtime': '1.75.0', ai: '6.0.326', '@ai-sdk/openai': '3.0.139', zod: '3.25.76' },
  about:
    'A `BuiltInAgent` with the AI SDK and the runner in memory. It is stopped as its own client does: by its stop route.',
  page: 'https://docs.copilotkit.ai/copilot-runtime',
  program: 'copilotkit.mjs',
  command: (location) => [process.execPath, program(location), '{port}', location.provider],
  env: () => ({ COPILOTKIT_TELEMETRY_DISABLED: 'true' }),
  url: 'http://127.0.0.1:{port}/api/copilotkit/agent/default/run',
  stopUrl: 'http://127.0.0.1:{port}/api/copilotkit/agent/default/stop/{id}',
};
