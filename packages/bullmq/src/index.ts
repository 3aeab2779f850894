// Start here: an engine for `defineConfig`.
export { bullmq } from './bullmq.ts';

// Your own workers.
export { type BullmqEngine, createBullmqEngine } from './bullmq-engine.ts';
