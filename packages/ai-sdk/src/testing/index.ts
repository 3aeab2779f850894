export { refusalsOf, strictValidators } from './history.ts';
export {
  type LoopbackOptions,
  type LoopbackProvider,
  type Script,
  startLoopbackProvider,
} from './loopback-provider.ts';
export type { LoopbackRequest } from './request-record.ts';
export { RULES, type Rule } from './rules.ts';
export type { Answer, AnswerPart, Chunks, Fault } from './script.ts';
export type { Refusal, StrictOptions } from './strict.ts';
export type { WireFormat } from './wire.ts';
