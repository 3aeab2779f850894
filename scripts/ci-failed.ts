// Prints the test files that failed, one per line.
//   node scripts/ci-failed.ts REPORT
import { existsSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[];
}

const [file = ''] = process.argv.slice(2);
const { testResults } = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Report) : { testResults: [] };
for (const { name, status } of testResults) if (status !== 'passed') console.log(relative('.', name));
