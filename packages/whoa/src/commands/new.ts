import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { type Command, EXIT, type Own, readArguments, UsageError } from '../command.ts';
import { scaffoldTool } from '../scaffold/tool-template.ts';
import { commandName } from '../terminal/command-name.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa new tool NAME [--folder FOLDER]

Writes a tool that stops when told, and the test that proves it: NAME.ts and NAME.test.ts. The test passes as it is; fill in
what says TODO, and it tells you when the tool no longer stops. Nothing is overwritten.

  --folder FOLDER   where to write them; this folder unless given`;

export const newCommand: Command = { help, run };

const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

function run(args: readonly string[], own: Own): Promise<number> {
  const { values, positionals } = readArguments(args, { folder: { type: 'string', default: '.' } }, 2);
  const [kind, name] = positionals;
  if (kind !== 'tool')
    throw new UsageError(
      `${kind === undefined ? 'say' : `'${kind}' cannot be made; say`} '${commandName()} new tool NAME'`,
    );
  const files = createWriteTool(checkName(name), resolve(values.folder));
  const screen = own(new Screen());
  for (const file of files) {
    if (values.json) screen.data({ type: 'file-created', file });
    else screen.line(`Created ${file}`);
  }
  if (!values.json) {
    screen.line('');
    screen.line(`Prove it:     node --test ${files[1]}`);
    screen.line('It needs:     npm install @whoa/core @whoa/tools zod');
  }
  return Promise.resolve(EXIT.success);
}

function checkName(name: string | undefined): string {
  if (name === undefined) throw new UsageError(`say what to call it: '${commandName()} new tool fetch_page'`);
  if (NAME.test(name) && /[a-zA-Z0-9]$/.test(name)) return name;
  const advice = suggestName(name);
  const rule = 'models accept letters, digits, _ and -, at most 64, beginning with a letter and ending with no sign';
  throw new UsageError(`'${name}' cannot be the name of a tool: ${rule}${advice === '' ? '' : `; try '${advice}'`}`);
}

function suggestName(name: string): string {
  const written = name
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .replace(/[^a-zA-Z0-9_-]+/g, '_')
    .replace(/^[^a-zA-Z]+/, '')
    .slice(0, 64);
  return written.replace(/[_-]+$/, '').toLowerCase();
}

function createWriteTool(name: string, folder: string): string[] {
  const { tool, test } = scaffoldTool(name);
  const files = { [join(folder, `${name}.ts`)]: tool, [join(folder, `${name}.test.ts`)]: test };
  const there = Object.keys(files).find((file) => existsSync(file));
  if (there !== undefined) throw new UsageError(`${there} is there already; choose another name or --folder`);
  mkdirSync(folder, { recursive: true });
  // `wx`: what somebody else made meanwhile stays.
  for (const [file, text] of Object.entries(files)) writeFileSync(file, text, { flag: 'wx' });
  return Object.keys(files).map((file) => relative(process.cwd(), file));
}
