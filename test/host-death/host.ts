// A host that tests can kill: runs the given commands, and cleans up nothing by itself.
import { createRuntime } from '@whoa/core';
import { createBashTool } from '@whoa/tools';

const [way = '', ...commands] = process.argv.slice(2);
const runtime = createRuntime({ tools: [createBashTool()] });
const calls = commands.map((command, index) => ({ id: `${index}`, tool: 'bash', input: { command } }));
runtime.execute(calls).catch((error: unknown) => console.error(error));

process.stdin.once('data', () => {
  if (way === 'exit') process.exit(0);
  if (way === 'crash') throw new Error('crash');
});
process.stdin.on('end', () => process.exit(0));
