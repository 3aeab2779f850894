// Runs one command in the shell tool and prints how its end was verified: `say-cleanup.ts COMMAND [TECHNIQUE]`.
import { createRuntime } from '@whoa/core';
import { createBashTool, createContainment, type Technique } from '@whoa/tools';

const [command = 'true', technique] = process.argv.slice(2) as [string?, Technique?];
const containment = createContainment(technique === undefined ? {} : { technique });
const runtime = createRuntime({ tools: [createBashTool({ containment })] });
const [result] = await runtime.execute([{ id: 'call', tool: 'bash', input: { command } }]);
const { cleanup } = (result!.details ?? {}) as { cleanup?: unknown };
if (cleanup === undefined) throw new Error(`The command did not run: ${JSON.stringify(result!.content)}`);
console.log(JSON.stringify(cleanup));
await containment[Symbol.asyncDispose]();
