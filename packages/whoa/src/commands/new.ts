import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { type Command, EXIT, readArguments, UsageError, type Use } from '../command.ts';
import { scaffoldTool } from '../scaffold/tool-template.ts';
import type { System } from '../system.ts';
import { commandName } from '../terminal/command-name.ts';
import { Screen } from '../terminal/screen.ts';

const help = `whoa new tool NAME [--folder FOLDER]

Creates a tool that stops when you cancel it, and a test that proves it: NAME.ts and NAME.test.ts. The test passes as written. Fill in
the TODOs; the test fails if the tool no longer stops. Existing files are not overwritten.

  --folder FOLDER   where to create them; defaults to this folder`;

const OPTIONS = { folder: { type: 'string', default: '.' } } as const;

export const command: Command = { help, options: OPTIONS, completes: ['tool'], run };

const NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/;

function run(args: readonly string[], own: Use, system: System): Promise<number> {
  const { values, positionals } = readArguments(args, OPTIONS, 2);
  const [kind, name] = positionals;
  const whoa = commandName(system.env);
  if (kind !== 'tool')
    throw new UsageError(`${kind === undefined ? 'use' : `cannot create '${kind}'; use`} '${whoa} new tool NAME'`);
  const files = createWriteTool(checkName(name, whoa), system.cwd(), values.folder);
  const screen = own(new Screen(system, values));
  for (const file of files) {
    screen.data({ type: 'file-created', file });
    screen.line(`Created ${file}`);
  }
  screen.line('');
  screen.line(`Prove it:     node --test ${files[1]}`);
  screen.line('It needs:     @whoa/core, @whoa/tools and zod');
  return Promise.resolve(EXIT.success);
}

function checkName(name: string | undefined, whoa: string): string {
  if (name === undefined)
    throw new UsageError(`missing the name of the tool; for example: '${whoa} new tool fetch_page'`);
  if (NAME.test(name) && /[a-zA-Z0-9]$/.test(name)) return name;
  const advice = suggestName(name);
  const rule = 'use at most 64 letters, digits, _ and -, starting with a letter and ending with a letter or digit';
  throw new UsageError(`'${name}' is not a valid tool name: ${rule}${advice === '' ? '' : `; try '${advice}'`}`);
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

function createWriteTool(name: string, cwd: string, given: string): string[] {
  const folder = resolve(cwd, given);
  const { tool, test } = scaffoldTool(name);
  const files = { [join(folder, `${name}.ts`)]: tool, [join(folder, `${name}.test.ts`)]: test };
  const there = Object.keys(files).find((file) => existsSync(file));
  if (there !== undefined) throw new UsageError(`${there} already exists; choose another name or --folder`);
  mkdirSync(folder, { recursive: true });
  // `wx`: don't overwrite a file that another process created in the meantime.
  for (const [file, text] of Object.entries(files)) writeFileSync(file, text, { flag: 'wx' });
  return Object.keys(files).map((file) => relative(cwd, file));
}
