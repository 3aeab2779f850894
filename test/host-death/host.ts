// A host that tests can kill: runs the given commands, and cleans up nothing by itself.
import { createRuntime } from '@whoa/core';
import { createBashTool, createContainment } from '@whoa/tools';

const [way = '', ...commands] = process.argv.slice(2);
const containment = createContainment();
const runtime = createRuntime({ tools: [createBashTool({ containment })] });
const calls = commands.map((command, index) => ({ id: `${index}`, tool: 'bash', input: { command } }));
const isBusy = way === 'busy';
const busy = isBusy
  ? await containment.start({ argv: ['bash', '-c', commands[0]!], env: process.env as Record<string, string> })
  : undefined;
if (!isBusy) runtime.execute(calls).catch((error: unknown) => console.error(error));

process.stdin.once('data', () => {
  if (way === 'exit') process.exit(0);
  if (way === 'crash') throw new Error('crash');
  if (busy !== undefined) {
    void busy.end().catch(() => {});
    // Nothing else of this process runs any more.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
});
process.stdin.on('end', () => process.exit(0));
