export { checkHistory } from './checker.ts';
export type { Effect, HistoryEntry, JournalSeen, TaskReceipt, TaskSeen, Violation } from './history.ts';
export { createRecorder, type Recorder } from './recorder.ts';
export type { CheckOptions } from './run-record.ts';
export {
  type ScriptedModel,
  type ScriptedReply,
  type ScriptedStep,
  type ScriptOptions,
  scriptedModel,
} from './scripted-model.ts';
export { createVirtualWorld, letEverythingReact, VirtualClock } from './virtual-world.ts';
