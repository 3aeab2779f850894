import type { Tool } from '@whoa/core';
import { createEditTool } from './edit.ts';
import { rootFrom } from './path/root.ts';
import { type ChangeToolOptions, createReadTool } from './read.ts';
import { createFindTool } from './search/find.ts';
import { createGrepTool } from './search/grep.ts';
import { createLsTool } from './search/ls.ts';
import { createWriteTool } from './write.ts';

/**
 * Creates every tool for the files under a root: `read`, `write`, `edit`, `ls`, `find`, `grep`.
 *
 * @returns The six tools.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { createFileTools } from '@whoa/tools';
 *
 * const editor = createAgent({ name: 'editor', model, tools: createFileTools({ root: '/srv/project' }) });
 * ```
 */
export function createFileTools({ contents, undoFolder, ...options }: ChangeToolOptions): Tool[] {
  const root = rootFrom(options.root);
  const tools = [createReadTool, createWriteTool, createEditTool, createLsTool, createFindTool, createGrepTool];
  return tools.map((create) => create({ root, contents, undoFolder }) as Tool);
}
