// A model that follows a script.
export { createScriptedModel, type ScriptedModel, type ScriptedStep } from './scripted-model.ts';

// Time that the test advances.
export { createVirtualWorld, VirtualClock, flushMicrotasks } from './virtual-world.ts';

// What happened, and whether it was allowed.
export { createRecorder, type Recorder } from './recorder.ts';
export { checkHistory } from './checker.ts';
export type { HistoryEntry } from './history.ts';
