// For code that connects a model, or plans without one.

// Write a model adapter.
export { type Model, type ModelRequest, type ModelMessage, type ModelPart, ModelError } from '../run/reply/model.ts';
export { prepareMessages } from '../run/history/prepare.ts';

// Write a planner: code, not a model, decides what comes next.
export { type Planner, type Step, callTools, reply } from '../run/reply/planner.ts';
