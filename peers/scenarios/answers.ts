import type { Answer } from '@whoa/ai-sdk/testing';

/** Says this much, and then nothing more until the client leaves. */
export const halfText: Answer = { parts: [{ text: ['Once ', 'upon a time ', { stall: true }] }] };

/** Accepts the request, and does not even begin to answer. */
export const silence: Answer = { beforeHeaders: { stall: true }, parts: [] };

/** Stops in the middle of the arguments of a call. */
export const halfArguments = (tool: string): Answer => ({
  parts: [{ text: 'Let me see. ' }, { call: tool, id: 'call_1', arguments: ['{"no', { stall: true }, 'te":"x"}'] }],
});

export const calls = (...tools: string[]): Answer => ({
  parts: tools.map((call, index) => ({ call, id: `call_${index + 1}`, input: { note: 'x' } })),
});
