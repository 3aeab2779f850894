import { PROBE_TOOL } from '../probe/attend.ts';

/** A tool in a request that can start the probe, and the input that makes it do so. */
export interface ProbeTool {
  readonly name: string;
  /** Whether it starts processes of the agent. The kit's own MCP tool does not. */
  readonly isShell: boolean;
  readonly inputFor: (call: { readonly key: string; readonly mode: string; readonly command: string }) => unknown;
}

interface Schema {
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
}

const SHELL_NAMES = /bash|shell|terminal|exec|command|process/i;
const COMMAND_FIELDS = ['command', 'cmd', 'script', 'commands'];

/** Returns the tools that a request declares, in any of the vendors' forms. */
function declaredTools(body: Readonly<Record<string, unknown>>): readonly { name: string; schema: Schema }[] {
  const tools = Array.isArray(body['tools']) ? (body['tools'] as Record<string, unknown>[]) : [];
  return tools.flatMap((tool) => {
    const declared = (tool['function'] ?? tool) as Record<string, unknown>;
    const schema = declared['parameters'] ?? declared['input_schema'];
    const { name } = declared;
    return typeof name === 'string' && typeof schema === 'object' && schema !== null ? [{ name, schema }] : [];
  });
}

/** Returns the tool of a request that can start the probe: a shell, otherwise the kit's own. */
export function findProbeTool(body: Readonly<Record<string, unknown>>): ProbeTool | undefined {
  const tools = declaredTools(body);
  for (const { name, schema } of tools.filter((tool) => SHELL_NAMES.test(tool.name))) {
    const field = COMMAND_FIELDS.find((one) => schema.properties?.[one] !== undefined);
    if (field === undefined) continue;
    const isList = schema.properties?.[field]?.type === 'array';
    return {
      name,
      isShell: true,
      inputFor: ({ command }) => ({ ...required(schema), [field]: isList ? listFor(field, command) : command }),
    };
  }
  const own = tools.find(({ name }) => name.endsWith(PROBE_TOOL));
  if (own === undefined) return undefined;
  return { name: own.name, isShell: false, inputFor: ({ key, mode }) => ({ key, mode }) };
}

/** `commands` is a list of commands; `command` as a list is one command and its arguments. */
function listFor(field: string, command: string): readonly string[] {
  return field === 'commands' ? [command] : ['sh', '-c', command];
}

/** A value for each field that must be there. */
function required(schema: Schema): Record<string, unknown> {
  const fields = (schema.required ?? []).map((name) => [name, valueFor(schema.properties?.[name] ?? {})] as const);
  return Object.fromEntries(fields);
}

function valueFor({ type, enum: values }: Schema): unknown {
  if (values !== undefined) return values[0];
  const [first] = Array.isArray(type) ? (type as readonly string[]) : [type as string | undefined];
  if (first === 'boolean') return false;
  if (first === 'number' || first === 'integer') return 60_000;
  if (first === 'array') return [];
  return first === 'object' ? {} : 'check';
}
