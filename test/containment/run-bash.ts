// Runs commands with the shell tool in the sandbox 'workspace', one at a time: `run-bash.ts FOLDER COMMAND…`. Prints
// each result.
import { createRuntime } from '@whoa/core';
import { createBashTool, createContainment } from '@whoa/tools';

const [cwd = '', ...commands] = process.argv.slice(2);
const containment = createContainment({ sandbox: { kind: 'workspace', workspace: cwd } });
const runtime = createRuntime({ tools: [createBashTool({ containment, cwd })] });
for (const [index, command] of commands.entries()) {
  const [result] = await runtime.execute([{ id: `call-${index}`, tool: 'bash', input: { command } }]);
  console.log(JSON.stringify({ content: result!.content, details: result!.details }));
}
await containment[Symbol.asyncDispose]();
