import type { Tool } from '@whoa/core';
import { editTool } from './edit.ts';
import { findTool } from './find.ts';
import { grepTool } from './grep.ts';
import { lsTool } from './ls.ts';
import { readTool, type TextToolOptions } from './read.ts';
import { rootFrom } from './root.ts';
import { writeTool } from './write.ts';

/**
 * Creates every tool for the files under a root: `read`, `write`, `edit`, `ls`, `find`, `grep`.
 *
 * @returns The six tools.
 *
 * @example
 * ```ts
 * import { createAgent } from '@whoa/core';
 * import { fileTools } from '@whoa/tools';
 *
 * const editor = createAgent({ name: 'editor', model, tools: fileTools({ root: '/srv/project' }) });
 * ```
 */
export function fileTools({ contents, ...options }: TextToolOptions): Tool[] {
  const root = rootFrom(options.root);
  const tools = [readTool, writeTool, editTool, lsTool, findTool, grepTool];
  return tools.map((create) => create({ root, contents }) as Tool);
}
