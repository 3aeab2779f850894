// A provider on this machine that says what it is told to.
export { startLoopbackProvider, type LoopbackProvider } from './loopback-provider.ts';
export type { Answer } from './script.ts';
export type { WireFormat } from './wire/wire.ts';

// What a strict provider would refuse.
export { findRefusals } from './history.ts';
