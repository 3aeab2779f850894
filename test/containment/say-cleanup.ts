// Runs one command in the shell tool and prints how its end was proved: `say-cleanup.ts TECHNIQUE COMMAND`.
import { createRuntime } from '@whoa/core';
import { createBashTool, createContainment, type Technique } from '@whoa/tools';

const [technique = 'tags', command = 'true'] = process.argv.slice(2);
const containment = createContainment({ technique: technique as Technique });
const runtime = createRuntime({ tools: [createBashTool({ containment })] });
const [result] = await runtime.execute([{ id: 'call', tool: 'bash', input: { command } }]);
const { cleanup } = (result!.details ?? {}) as { cleanup?: unknown };
if (cleanup === undefined) throw new Error(`The command did not run: ${JSON.stringify(result!.content)}`);
console.log(JSON.stringify(cleanup));
await containment[Symbol.asyncDispose]();
