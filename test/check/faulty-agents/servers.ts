// How the kit starts the broken servers.
import { join } from 'node:path';
import type { AgentCommand } from '@whoa/check';

/** A server of this folder with its arguments. */
export function brokenServer(name: 'a2a' | 'mcp' | 'stream', ...args: string[]): AgentCommand {
  return { command: [process.execPath, '--no-warnings', join(import.meta.dirname, `${name}-server.ts`), ...args] };
}
