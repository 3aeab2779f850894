import type { Tool } from '../../tool/tool.ts';
import { type Planner, plannedRequests, REQUESTS } from '../reply/planner.ts';
import type { ModelIds } from './price.ts';

/** The key of the models that an agent and its sub-agents ask. `undefined` stands for one that is not known. */
export const MODELS: unique symbol = Symbol.for('@whoa/core/models');

export type WithModels<Public> = Public & { readonly [MODELS]?: readonly (ModelIds | undefined)[] | undefined };

/** Returns which models an agent asks, those of its listed sub-agents included. */
export function listModels(planner: Planner, tools: readonly WithModels<Tool>[]): readonly (ModelIds | undefined)[] {
  const isKnown = planner.model !== undefined || Object.hasOwn(planner, REQUESTS);
  const own = isKnown ? plannedRequests(planner).ids : undefined;
  return [own, ...tools.flatMap((tool) => tool[MODELS] ?? [])];
}
