import { isList, isObject, type Rule, SettingsError, unexpected } from '../stop/settings.ts';
import { isPromiseLike } from '../stop/wait.ts';

/** Any Standard Schema: zod, valibot, arktype and others. Only the part in use is declared here. */
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

/** The rule for a setting that is a schema. Common mistakes get an error that says what to do. */
export const inputSchema: Rule = (value, field) => {
  if (isObject(value) || typeof value === 'function') {
    const given = value as Partial<InputSchema> & Record<string, unknown>;
    if (typeof given['~standard']?.validate === 'function') return value;
    if (isJsonSchema(given)) {
      const advice = 'describe the input with zod, valibot or arktype, and pass JSON Schema as inputJsonSchema';
      throw new SettingsError(field, `JSON Schema cannot check a value; ${advice}`);
    }
    if (isObject(value) && Object.values(given).some((one) => isObject(one) && '~standard' in one)) {
      throw new SettingsError(field, 'these are the fields of a schema; wrap them in a schema, as in z.object({ … })');
    }
  }
  throw unexpected(field, value, 'a Standard Schema (zod, valibot, arktype or another)');
};

function isJsonSchema(given: Record<string, unknown>): boolean {
  return '$schema' in given || typeof given['type'] === 'string' || isObject(given['properties']);
}

/** Thrown when an input does not match its schema. Names every field, so that the model can correct it. */
export class InvalidInputError extends Error {
  override readonly name: string = 'InvalidInputError';
  readonly code: string = 'INVALID_INPUT';
}

/** Returns the parsed input, synchronously if the schema can. Throws `InvalidInputError`. */
export function parseInput<Output>(schema: InputSchema<Output>, value: unknown): Output | PromiseLike<Output> {
  const result = schema['~standard'].validate(value);
  return isPromiseLike(result) ? result.then(getOutput) : getOutput(result);
}

function getOutput<Output>(result: SchemaResult<Output>): Output {
  const { issues } = result;
  if (issues === undefined) return result.value;
  throw new InvalidInputError(isList(issues) ? issues.slice(0, MAX_ISSUES).map(describeIssue).join('; ') : NO_REASON);
}

/** More issues than a model can use. */
const MAX_ISSUES = 100;
const NO_REASON = 'the schema refused it and did not say why';

function describeIssue(issue: unknown): string {
  try {
    const { message, path } = issue as SchemaIssue;
    if (typeof message !== 'string') return NO_REASON;
    if (path === undefined || path.length === 0) return message;
    const keys = path.slice(0, MAX_ISSUES).map((step) => String(typeof step === 'object' ? step.key : step));
    return `${keys.join('.')}: ${message}`;
  } catch {
    return NO_REASON;
  }
}
