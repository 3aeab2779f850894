// The reference of the command, docs/reference/cli.md, made of the help that the commands print. npm run cli writes it;
// npm run check compares.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { COMMANDS } from '../packages/whoa/src/command-table.ts';

const PAGE = 'docs/reference/cli.md';
const file = join(import.meta.dirname, '..', PAGE);

const INTRODUCTION = `# The command

This page lists every \`whoa\` command with its options, exactly as \`whoa help COMMAND\` prints them.
[Use the terminal](../guides/terminal.md) shows how to work with them.

Written by \`npm run cli\`.

| command | what it does |
|---|---|
`;

/** Returns the page that the commands' help makes. */
async function createPage(): Promise<string> {
  const rows = Object.entries(COMMANDS).map(([name, { summary }]) => `| [\`whoa ${name}\`](#${name}) | ${summary} |\n`);
  const sections = Object.entries(COMMANDS).map(async ([name, { summary, load }]) => {
    const { help } = (await load()).command;
    return `\n## ${name}\n\n${summary[0]!.toUpperCase()}${summary.slice(1)}.\n\n\`\`\`text\n${help}\n\`\`\`\n`;
  });
  return INTRODUCTION + rows.join('') + (await Promise.all(sections)).join('');
}

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } });
const page = await createPage();
if (values.write) writeFileSync(file, page);
else if (!existsSync(file) || readFileSync(file, 'utf8') !== page) {
  console.error(`${PAGE} differs from the help of the commands; run npm run cli`);
  process.exitCode = 1;
}
