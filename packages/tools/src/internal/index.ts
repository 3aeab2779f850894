// For Whoa's own packages. Anything here may change in any release.

// Single tools of `createFileTools`.
export { createWriteTool } from '../files/write.ts';
export { createEditTool } from '../files/edit.ts';
export { createLsTool } from '../files/search/ls.ts';
export { createGrepTool } from '../files/search/grep.ts';
export type { FileContents } from '../files/contents.ts';

// What `whoa doctor` lists.
export { findRipgrep } from '../files/search/ripgrep.ts';
