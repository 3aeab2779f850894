export { type CheckOptions, checkHistory, type Violation } from './checker.ts';
export { createRecorder, type HistoryEntry, type Recorder } from './recorder.ts';
export {
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
  type ScriptOptions,
  scriptedModel,
} from './scripted-model.ts';
export { createVirtualWorld, letEverythingReact, VirtualClock } from './virtual-world.ts';
