import { getSystemErrorMessage } from 'node:util';
import { defineTool, type Tool, type ToolDefinition } from '@whoa/core';

/** Defines a tool for a path. What the system refuses is told in words, about the path as the model knows it. */
export function defineFileTool<Input extends { readonly path: string }>(
  definition: ToolDefinition<Input>,
): Tool<Input> {
  return defineTool({
    ...definition,
    async execute(input, context) {
      try {
        return await definition.execute(input, context);
      } catch (error) {
        throw explainSystemError(error, input.path);
      }
    },
  });
}

/** A system error names descriptors and temp files, which mean nothing to anybody else. */
function explainSystemError(error: unknown, path: string): unknown {
  if (!(error instanceof Error && 'syscall' in error && 'errno' in error)) return error;
  return new Error(`'${path}': ${getSystemErrorMessage(error.errno as number)}`, { cause: error });
}
