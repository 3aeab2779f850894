// Writes the rules that other languages share with TypeScript: npm run rules. They are checked in; npm run check compares them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RULE_FILES } from '../packages/tasks/src/stores/postgres/sql/rule-files.ts';
import { toLuaRules, toLuaTransitions } from './rules/lua.ts';
import { createSqlFiles } from './rules/sql.ts';

const SQL = Object.entries(createSqlFiles(RULE_FILES)).map(([name, text]) => [`postgres/sql/${name}`, text] as const);
const FILES: Readonly<Record<string, string>> = {
  'redis/lua/rules.lua': toLuaRules(),
  'redis/lua/transitions.lua': toLuaTransitions(),
  ...Object.fromEntries(SQL),
};

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
for (const [path, text] of Object.entries(FILES)) {
  const file = join(import.meta.dirname, '../packages/tasks/src/stores', path);
  if (values.write) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${path} is not what the rules in TypeScript say; run: npm run rules`);
    process.exitCode = 1;
  }
}
