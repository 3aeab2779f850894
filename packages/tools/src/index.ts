// Files: read, write, edit, ls, find and grep under a root.
export { createFileTools } from './files/file-tools.ts';
export { createReadTool } from './files/read.ts';
export { createWriteTool } from './files/write.ts';
export { createEditTool } from './files/edit.ts';
export { removeOldContents } from './files/change/file-keeper.ts';
export { createLsTool } from './files/search/ls.ts';
export { createFindTool } from './files/search/find.ts';
export { createGrepTool } from './files/search/grep.ts';
export { createRoot, type Root } from './files/path/root.ts';
export type { ResolvedPath } from './files/path/resolved-path.ts';
export type { FileContents } from './files/contents.ts';
export { findRipgrep } from './files/search/ripgrep.ts';

// Shell: commands for a model, and processes that outlive a call.
export { createBashTool } from './shell/bash.ts';
export { createBackgroundTools } from './shell/background-tools.ts';
export { createBackgroundProcesses, type BackgroundProcesses, type BackgroundProcess } from './shell/background.ts';
export type { ShellResult, LiveShell } from './shell/run-shell.ts';
export type { CapturedOutput } from './process/output/capture.ts';

// Processes: commands whose whole tree can be ended.
export { createContainment } from './process/containment/create-containment.ts';
export type { Containment } from './process/containment/containment.ts';
export type { ContainedProcess, CleanupReport } from './process/containment/contained.ts';
export { detectContainments, type DetectedTechnique, type Technique } from './process/containment/technique.ts';
export { endLeftovers } from './process/leftovers.ts';

// Sandbox: what commands may reach.
export { detectSandbox } from './sandbox/detect.ts';
export { runsLater, findRunLater } from './sandbox/run-later.ts';
export { type SandboxOptions, type SandboxKind, SANDBOX_KINDS, type NetworkRequest } from './sandbox/options.ts';

// MCP: the tools of MCP servers.
export { createMcpTools, type McpTools } from './mcp/mcp-tools.ts';
