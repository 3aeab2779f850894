// Start here: tools for an agent.
export { createBashTool } from './shell/bash.ts';
export { createFileTools } from './files/file-tools.ts';
export { createMcpTools, type McpTools } from './mcp/mcp-tools.ts';

// Files: the folder that tools may use, and what they keep for an undo.
export { createRoot, type Root } from './files/path/root.ts';
export type { ResolvedPath } from './files/path/resolved-path.ts';
export { removeOldContents } from './files/change/file-keeper.ts';

// Background processes: they outlive a call.
export { createBackgroundTools } from './shell/background-tools.ts';
export { createBackgroundProcesses, type BackgroundProcesses, type BackgroundProcess } from './shell/background.ts';

// Processes: commands whose whole tree can be ended.
export { createContainment } from './process/containment/create-containment.ts';
export type { Containment } from './process/containment/containment.ts';
export type { ContainedProcess, CleanupReport } from './process/containment/contained.ts';
export { detectContainments, type DetectedTechnique, type Technique } from './process/containment/technique.ts';
export { endLeftovers } from './process/leftovers.ts';

// Sandbox: what commands may reach.
export { detectSandbox } from './sandbox/detect.ts';
export { runsLater, findRunLater } from './sandbox/run-later.ts';
export type { SandboxOptions, SandboxKind, NetworkRequest } from './sandbox/options.ts';
