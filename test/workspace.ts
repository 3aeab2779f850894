// A separate folder for a test, and one call of a tool in it.
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { type CallResult, type CancellationToken, createRuntime, isCancelledError, type Tool } from '@whoa/core';

export interface Workspace extends Disposable {
  readonly path: string;
  at(name: string): string;
  write(name: string, content: string | Buffer): string;
  read(name: string): string;
  /** Every file and folder in it. */
  list(): string[];
}

export function createWorkspace(files: Readonly<Record<string, string>> = {}): Workspace {
  const path = mkdtempSync(join(tmpdir(), `whoa-test-${process.pid}-`));
  const workspace: Workspace = {
    path,
    at: (name) => join(path, name),
    write(name, content) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), content);
      return join(path, name);
    },
    read: (name) => readFileSync(join(path, name), 'utf8'),
    list: () =>
      listBelow(path)
        .map((entry) => relative(path, entry))
        .sort(),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true, maxRetries: 10 }),
  };
  for (const [name, content] of Object.entries(files)) workspace.write(name, content);
  return workspace;
}

/** Node's own recursion sometimes follows links, which may form a loop. */
function listBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? [path, ...listBelow(path)] : [path];
  });
}

/** Runs one call to its result, cancelled or not. */
export async function callTool<Input>(
  tool: Tool<Input>,
  input: unknown,
  options: { token?: CancellationToken } = {},
): Promise<CallResult> {
  const runtime = createRuntime({ tools: [tool as Tool] });
  try {
    const [result] = await runtime.execute([{ id: 'call', tool: tool.name, input }], options);
    return result!;
  } catch (error) {
    if (!isCancelledError(error)) throw error;
    return (error.partial as CallResult[])[0]!;
  }
}
