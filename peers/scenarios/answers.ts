import type { ScriptedResponse } from '@whoa/ai-sdk/testing';

/** Sends this much, and then nothing more until the client disconnects. */
export const halfText: ScriptedResponse = { parts: [{ text: ['Once ', 'upon a time ', { stall: true }] }] };

/** Accepts the request, and does not even begin to answer. */
export const silence: ScriptedResponse = { beforeHeaders: { stall: true }, parts: [] };

/** Stops while a call's arguments stream. */
export const halfArguments = (tool: string): ScriptedResponse => ({
  parts: [{ text: 'Let me see. ' }, { call: tool, id: 'call_1', arguments: ['{"no', { stall: true }, 'te":"x"}'] }],
});

export const calls = (...tools: string[]): ScriptedResponse => ({
  parts: tools.map((call, index) => ({ call, id: `call_${index + 1}`, input: { note: 'x' } })),
});
