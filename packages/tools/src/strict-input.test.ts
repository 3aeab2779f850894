import { expect, test } from 'vitest';
import { createWorkspace } from '../../../test/workspace.ts';
import { createFileTools } from './files/file-tools.ts';
import { createContainment } from './process/containment/create-containment.ts';
import { createBackgroundProcesses } from './shell/background.ts';
import { createBackgroundTools } from './shell/background-tools.ts';
import { createBashTool } from './shell/bash.ts';

const VALID: Readonly<Record<string, object>> = {
  bash: { command: 'true' },
  background_list: {},
  background_output: { id: 'b1' },
  background_stop: { id: 'b1' },
  read: { path: 'a' },
  write: { path: 'a', content: '' },
  edit: { path: 'a', edits: [{ oldText: 'a', newText: 'b' }] },
  ls: {},
  find: { glob: '*' },
  grep: { pattern: 'a' },
};

test('every tool rejects unknown fields, and lists its own', async () => {
  using workspace = createWorkspace({});
  await using containment = createContainment();
  await using background = createBackgroundProcesses({ containment });
  const tools = [
    createBashTool({ containment }),
    ...createBackgroundTools(background),
    ...createFileTools({ root: workspace.path }),
  ];
  expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(VALID).toSorted());
  for (const { name, inputSchema } of tools) {
    const check = (more: object) => inputSchema['~standard'].validate({ ...VALID[name], ...more });
    expect(await check({}), name).not.toHaveProperty('issues');
    const { issues } = (await check({ timeout: 1 })) as { issues: { message: string }[] };
    expect(issues[0]!.message, name).toMatch(/^unknown fields: timeout; the fields are \w+/);
  }
  const bash = tools[0]!.inputSchema['~standard'].validate({ command: 'true', timeout: 1 });
  expect(JSON.stringify(await bash)).toContain('the fields are command, timeoutSeconds');
});
