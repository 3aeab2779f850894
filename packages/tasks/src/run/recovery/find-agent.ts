import type { Agent, Tool } from '@whoa/core';
import { NESTED } from '@whoa/core/internal';

/** Returns the agent that calls of a tool run, if it is an agent's. */
export function findAgent(name: string, tools: readonly Tool[]): Agent | undefined {
  const tool = tools.find((one) => one.name === name);
  return (tool as { readonly [NESTED]?: Agent } | undefined)?.[NESTED];
}
