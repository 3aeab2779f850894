// files: read, write, edit, ls, find and grep under a root
export type { FileContents } from './files/contents.ts';
export { type Edit, type EditInput, editTool } from './files/edit.ts';
export { fileTools } from './files/file-tools.ts';
export { type FindInput, findTool } from './files/find.ts';
export { grepTool } from './files/grep.ts';
export type { GrepInput } from './files/grep-input.ts';
export { type LsInput, lsTool } from './files/ls.ts';
export { PathError, type Place, type WalkOptions } from './files/place.ts';
export { type FileToolOptions, type ReadInput, readTool, type TextToolOptions } from './files/read.ts';
export { FileChangedError } from './files/replace-file.ts';
export { findRipgrep } from './files/ripgrep.ts';
export { createRoot, type Root, type RootOptions } from './files/root.ts';
export { type WriteInput, writeTool } from './files/write.ts';
// mcp: the tools of MCP servers
export { type McpOptions, type McpTools, mcpTools } from './mcp/mcp-tools.ts';
export type { ServerCommand } from './mcp/server-process.ts';
export type { McpTransport } from './mcp/transport.ts';
// process: commands whose whole tree can be ended
export type {
  CleanupReport,
  Command,
  ContainedProcess,
  EndOptions,
  ProcessExit,
} from './process/contained.ts';
export { GRACE_MS } from './process/contained.ts';
export type { Containment, ContainmentOptions } from './process/containment.ts';
export { createContainment } from './process/create-containment.ts';
export { endLeftovers } from './process/leftovers.ts';
export { type DetectedTechnique, detectContainments, type Technique } from './process/technique.ts';
// sandbox: what commands may reach
export { type DetectedSandbox, detectSandbox } from './sandbox/detect.ts';
export {
  type NetworkOptions,
  type NetworkRequest,
  SANDBOX_KINDS,
  type SandboxKind,
  type SandboxLimits,
  type SandboxOptions,
} from './sandbox/options.ts';
// shell: a shell for a model, and processes that outlive a call
export {
  type BackgroundKeeper,
  type BackgroundOptions,
  type BackgroundProcess,
  type BackgroundProcesses,
  createBackgroundProcesses,
} from './shell/background.ts';
export { backgroundTools } from './shell/background-tools.ts';
export { type BashInput, type BashToolOptions, bashTool } from './shell/bash.ts';
export { type EnvironmentOptions, shellEnvironment } from './shell/environment.ts';
export type { ShellEnd, ShellOptions } from './shell/run-shell.ts';
