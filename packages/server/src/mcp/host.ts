// What an MCP host can do, and who it acts for. Without types of the MCP library: it is an optional peer.
import type { NewTask, TaskRef, TaskStore } from '@whoa/tasks';
import type { Access } from '../http/access/access.ts';
import type { Principal } from '../http/access/principal.ts';

/** Tasks are an extension of the 2026-07-28 protocol. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

/** What is served: agents, and the store of their tasks. */
export interface McpAgents {
  readonly store: TaskStore;
  /** The agents, each with what it is for. Each becomes one tool with its name. */
  readonly agents: Readonly<Record<string, string>>;
  /** Creates a task. By default it is only stored, and a worker runs it. */
  readonly start?: ((task: NewTask) => Promise<TaskRef>) | undefined;
}

/** Who calls, and what decides what they may do. */
export interface McpCaller {
  readonly principal: Principal;
  readonly access: Access;
}

interface HostAbilities {
  readonly hasTasks: boolean;
  /** It asks its user what a task asks. */
  readonly canAsk: boolean;
}

/** Reads the abilities of a host from the metadata of its request. Hosts of older protocols send none. */
export function findAbilities({ mcpReq }: { readonly mcpReq: { readonly envelope?: unknown } }): HostAbilities {
  const capabilities = toFields(toFields(mcpReq.envelope)[CAPABILITIES]);
  const { elicitation } = capabilities;
  const isForm = Object.keys(toFields(elicitation)).length === 0 || 'form' in toFields(elicitation);
  return {
    hasTasks: Object.hasOwn(toFields(capabilities['extensions']), TASKS_EXTENSION),
    canAsk: typeof elicitation === 'object' && elicitation !== null && isForm,
  };
}

function toFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
