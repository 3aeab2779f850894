import { isPromiseLike } from '../stop/wait.ts';

/**
 * Any Standard Schema: zod, valibot, arktype and others. Only the part that is used stands here, so that the core needs
 * no package for it.
 */
export interface InputSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    /** Schemas that can describe themselves to a model (Standard JSON Schema). */
    readonly jsonSchema?: { readonly input: (options: { readonly target: 'draft-07' }) => Record<string, unknown> };
  };
}

type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Thrown when a model's input does not fit its tool. The text names every field, so that the model can do better. */
export class InvalidInputError extends Error {
  override readonly name: string = 'InvalidInputError';
  readonly code: string = 'INVALID_INPUT';
}

/** The input as the schema understands it, at once if the schema can. Throws `InvalidInputError`. */
export function parseInput<Output>(schema: InputSchema<Output>, value: unknown): Output | PromiseLike<Output> {
  const result = schema['~standard'].validate(value);
  return isPromiseLike(result) ? result.then(outputOf) : outputOf(result);
}

function outputOf<Output>(result: SchemaResult<Output>): Output {
  if (result.issues !== undefined) throw new InvalidInputError(result.issues.map(describeIssue).join('; '));
  return result.value;
}

function describeIssue({ message, path }: SchemaIssue): string {
  if (path === undefined || path.length === 0) return message;
  const keys = path.map((step) => String(typeof step === 'object' ? step.key : step));
  return `${keys.join('.')}: ${message}`;
}
