import type { ScriptedResponse } from '@whoa/ai-sdk/testing';
import { type Attack, isAttack, type ProbeMode } from '../probe/probe.ts';

/** What the model does when a prompt names it. */
const ACTIONS = {
  reply: 'it answers',
  think: 'it sends nothing',
  stream: 'it sends two words, then nothing',
  arguments: 'it sends half of the input of a call, then nothing',
  'call-and-stall': 'it sends a whole call and a word, then nothing',
  call: 'it calls the probe',
  'call-tree': 'it calls a probe that starts processes',
  'call-unresponsive': 'it calls a probe that ignores signals',
  'two-calls': 'it calls the probe twice in one reply',
  'call-then-stream': 'it calls a probe that ends immediately, then sends two words, then nothing',
} as const;
/** What it does; an attack is that it calls a probe that resists its stop. */
export type Action = keyof typeof ACTIONS | Attack;

/** The prompt that makes the model do something. The key tells one prompt from another. */
export function promptFor(action: Action, key: string): string {
  return `Do this check and nothing else: check-${key}-${action}`;
}

/** What a prompt asks for. */
export interface Directive {
  readonly key: string;
  readonly action: Action;
}

/** The last thing that a request asks for. */
export function parseDirective(request: string): Directive | undefined {
  const [, key, action] = [...request.matchAll(/\bcheck-([0-9a-f]{8})-([a-z]+(?:-[a-z]+)*)/g)].at(-1) ?? [];
  const isKnown = action !== undefined && (Object.hasOwn(ACTIONS, action) || isAttack(action));
  return key !== undefined && isKnown ? { key, action: action as Action } : undefined;
}

/** The words that the model says before it stalls. Whatever it says, the second is the last. */
export function toReplyText(key: string): readonly [string, string] {
  return [`alpha-${key} `, `bravo-${key} `];
}

/** The key of the second of two calls. */
export function secondKey(key: string): string {
  return `${key}b`;
}

/** How the probe is called in an action. */
export function getProbeMode(action: Action): ProbeMode {
  if (isAttack(action)) return action;
  if (action === 'call-tree') return 'tree';
  if (action === 'call-unresponsive') return 'ignore-signals';
  return action === 'call-then-stream' ? 'quick' : 'plain';
}

type Part = NonNullable<ScriptedResponse['parts']>[number];

/** Makes the part of an answer that calls the probe. */
export type CallProbe = (key: string, mode: ProbeMode) => Extract<Part, { readonly call: string }>;

interface Request {
  readonly key: string;
  /** How many requests of this prompt came before. */
  readonly step: number;
  readonly call: CallProbe;
}

const STALL = { stall: true } as const;

/** What the model says in one step of an action. */
export function answerTo(action: Action, { key, step, call }: Request): ScriptedResponse {
  const done: ScriptedResponse = { parts: [{ text: [`Done with ${key}.`] }] };
  const stream: ScriptedResponse = { parts: [{ text: [...toReplyText(key), STALL] }] };
  if (action === 'call-then-stream') return step === 0 ? { parts: [call(key, 'quick')] } : step === 1 ? stream : done;
  if (action === 'reply' || step > 0) return done;
  if (action === 'think') return { beforeHeaders: STALL };
  if (action === 'stream') return stream;
  const first = call(key, getProbeMode(action));
  if (action === 'call-and-stall') return { parts: [first, { text: [toReplyText(key)[1], STALL] }] };
  if (action === 'two-calls') return { parts: [first, call(secondKey(key), 'plain')] };
  if (action === 'arguments') {
    const whole = JSON.stringify(first.input ?? {});
    const half = [whole.slice(0, Math.ceil(whole.length / 2)), STALL];
    return { parts: [{ text: [toReplyText(key)[1]] }, { ...first, arguments: half }] };
  }
  return { parts: [{ text: [`I call the probe ${key}. `] }, first] };
}
