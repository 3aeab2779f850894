// Writes the rules that SQL shares with TypeScript: npm run rules. They are checked in; npm run check compares them.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { RULE_FILES } from '../packages/tasks/src/ledger/postgres/sql/rule-files.ts';
import { createSqlFiles } from './rules/sql.ts';

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
for (const [name, text] of Object.entries(createSqlFiles(RULE_FILES))) {
  const file = join(import.meta.dirname, '../packages/tasks/src/ledger/postgres/sql', name);
  if (values.write) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error(`${name} is not what the rules in TypeScript say; run: npm run rules`);
    process.exitCode = 1;
  }
}
