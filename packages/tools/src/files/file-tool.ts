import { getSystemErrorMessage } from 'node:util';
import { defineTool, type Tool } from '@whoa/core';
import type { ToolDefinition } from '@whoa/core/embed';

/** Defines a tool for a path. System errors are explained with the path as the model knows it. */
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

/** System errors name descriptors and temp files, which mean nothing to a model. */
function explainSystemError(error: unknown, path: string): unknown {
  if (!(error instanceof Error && 'syscall' in error && 'errno' in error)) return error;
  return new Error(`'${path}': ${getSystemErrorMessage(error.errno as number)}`, { cause: error });
}
