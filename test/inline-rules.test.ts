import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { inlineRules } from '../scripts/inline-rules.ts';
import { createWorkspace } from './workspace.ts';

const READER = new URL('../packages/tasks/src/ledger/read-rule-files.ts', import.meta.url).href;

test('a built module holds the files next to its source, and reads none', async () => {
  const sql = 'SELECT \'`$`\' || "\\n\u2028";\n';
  using root = createWorkspace({
    'packages/a/src/sql/rule-files.ts': `import { readRuleFiles } from '${READER}';\nexport const RULE_FILES = readRuleFiles(import.meta.url);\n`,
    'packages/a/src/sql/take.sql': 'SELECT 1;\n',
    'packages/a/src/sql/rows.sql': sql,
    'packages/a/src/sql/other.txt': 'no rule',
    'packages/a/dist/sql/rule-files.js': "throw new Error('not replaced')",
    'packages/a/dist/sql/rule-files.js.map': '{}',
  });
  const built = root.at('packages/a/dist/sql/rule-files.js');
  expect(await inlineRules(root.path)).toEqual([built]);
  const module = (await import(pathToFileURL(built).href)) as Record<string, unknown>;
  expect(module['RULE_FILES']).toEqual({ 'rows.sql': sql, 'take.sql': 'SELECT 1;\n' });
  expect(root.read('packages/a/dist/sql/rule-files.js')).not.toContain('import');
  expect(root.list()).not.toContain('packages/a/dist/sql/rule-files.js.map');
});

test('a module without rules next to it fails', async () => {
  using root = createWorkspace({
    'packages/a/src/rule-files.ts': `import { readRuleFiles } from '${READER}';\nexport const RULE_FILES = readRuleFiles(import.meta.url);\n`,
  });
  await expect(inlineRules(root.path)).rejects.toThrow('run: npm run build');
});
