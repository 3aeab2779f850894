// A local provider that follows a script.
export { startLoopbackProvider, type LoopbackProvider } from './loopback-provider.ts';
export type { ScriptedResponse } from './script.ts';
export type { WireFormat } from './wire/wire.ts';

// What a strict provider would refuse.
export { findRefusals } from './history.ts';
