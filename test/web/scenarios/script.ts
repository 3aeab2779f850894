import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type LoopbackProvider, type ScriptedResponse, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { ALL } from '../browser.ts';

/** A chat as the model and the tools see it. */
export interface SiteState {
  /** The effects of the tools: `look started`, `look left` (it got its signal), `look ended`. */
  readonly effects: string[];
  /** The model's requests, as text. */
  readonly told: string[];
  /** The process that called the model last. */
  maker?: number;
  /** The model pauses and tools wait until it is open. */
  readonly gate: PromiseWithResolvers<void>;
}

/** The model and the tools of all sites of a harness. */
export interface Script extends AsyncDisposable {
  readonly modelUrl: string;
  readonly controlUrl: string;
  site(id: string): SiteState;
  /** Why the strict provider refused a request; empty if it never did. */
  refusals(): readonly string[];
}

const WORDS = ALL.split(/(?<= )/);
const PAUSE_AFTER = 5;
export const CALLING = 'Calling. ';
export const HUGE = Array.from({ length: 128 }, (_, i) => `${String(i).padStart(5, '0')} ${'x'.repeat(4_089)}\n`);
export const LINE = 'a'.repeat(200_000);
export const UNICODE = ['日本', '語 ', '👩‍👩‍👧', '👦 ', 'é', '\u202Eabc', ' <img src=x onerror="window.xss=1"> ', 'نص'];

type Said = { readonly role: string; readonly content: unknown };

/** A message names what the model should do, and in which site: `call look site-1`. */
function answerTo(
  { body, headers }: LoopbackProvider['requests'][number],
  site: (id: string) => SiteState,
): ScriptedResponse {
  const messages = body['messages'] as readonly Said[];
  const last = messages.findLastIndex(({ role }) => role === 'user');
  const text = JSON.stringify(messages[last]!.content);
  const [, what = '', tool = '', id = ''] = /(\w+) (?:(\w+) )?(site-[\w-]+)/.exec(text) ?? [];
  const state = site(id);
  state.maker = Number(headers['x-process']);
  const isRepeat = state.told.some((one) => one.includes(text));
  state.told.push(JSON.stringify(messages));
  const all: ScriptedResponse = { parts: [{ text: WORDS }] };
  const hasResult = messages.slice(last).some(({ role }) => role === 'tool');
  if (what === 'call' && !hasResult) return { parts: [{ text: CALLING }, { call: tool, input: { site: id } }] };
  const stall = { stall: state.gate.promise };
  // A process that takes a reply over calls the model again.
  if (what === 'hold' || (what === 'half' && !isRepeat))
    return { parts: [{ text: [...WORDS.slice(0, PAUSE_AFTER), stall, ...WORDS.slice(PAUSE_AFTER)] }] };
  if (what === 'stall') return { parts: [{ text: [stall, ...WORDS] }] };
  if (what === 'huge') return { parts: [{ text: HUGE }], pace: { intervalMs: 4 } };
  if (what === 'line') return { parts: [{ text: [LINE, ' end'] }] };
  if (what === 'unicode') return { parts: [{ text: UNICODE }] };
  if (what === 'break') return { parts: [{ text: ['one ', 'two ', { cut: true }] }] };
  return all;
}

export async function openScript(): Promise<Script> {
  const sites = new Map<string, SiteState>();
  const site = (id: string): SiteState => {
    const state = sites.get(id) ?? { effects: [], told: [], gate: Promise.withResolvers<void>() };
    sites.set(id, state);
    return state;
  };
  const provider = await startLoopbackProvider({ script: (request) => answerTo(request, site) });
  const control = createServer((request, response) => {
    const [, tool = '', id = ''] = request.url!.split('/');
    holdTool(tool, site(id), response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => control.listen(0, '127.0.0.1', resolve));
  return {
    modelUrl: provider.url,
    controlUrl: `http://127.0.0.1:${(control.address() as AddressInfo).port}`,
    site,
    refusals: () =>
      provider.requests.flatMap(({ refusal }) => (refusal === undefined ? [] : [JSON.stringify(refusal)])),
    async [Symbol.asyncDispose]() {
      for (const { gate } of sites.values()) gate.resolve();
      await provider.close();
      await closed(control);
    },
  };
}

async function holdTool(tool: string, { effects, gate }: SiteState, response: ServerResponse): Promise<void> {
  effects.push(`${tool} started`);
  let hasLeft = false;
  response.once('close', () => {
    hasLeft = !response.writableEnded;
    if (hasLeft) effects.push(`${tool} left`);
  });
  // `pay` does not wait: it runs after a yes.
  if (tool !== 'pay') await gate.promise;
  if (hasLeft) return;
  effects.push(`${tool} ended`);
  response.end(`${tool} done`);
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
