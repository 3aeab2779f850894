import { createInterruptedError, defineTool, type Tool, type ToolResult } from '@whoa/core';
import { z } from 'zod';

const MAX_CHARS = 20_000;

/** Fetches a web page. When it is stopped, returns the part that has arrived. */
export const fetchPage: Tool<{ url: string }> = defineTool({
  name: 'fetch_page',
  description: `Fetch a web page as text, at most ${MAX_CHARS} characters.`,
  inputSchema: z.object({ url: z.url() }),
  effects: 'read', // It changes nothing, so it needs no approval.
  replay: 'safe', // After a crash it may simply run again.
  timeoutMs: 30_000,
  async execute({ url }, { signal, token, update }) {
    let text = '';
    const soFar = (): ToolResult => ({ content: text, details: { url, characters: text.length } });
    try {
      const response = await fetch(url, { signal });
      if (!response.ok) throw new Error(`${url} answered ${response.status}; check the address`);
      const body: AsyncIterable<Uint8Array> | null = response.body;
      const decoder = new TextDecoder();
      for await (const chunk of body ?? []) {
        text = (text + decoder.decode(chunk, { stream: true })).slice(0, MAX_CHARS);
        update(soFar());
        if (text.length === MAX_CHARS) break;
      }
      return soFar();
    } catch (error) {
      // Ask the token, not the error: an aborted fetch fails in many ways.
      if (token.isCancelled) throw createInterruptedError(token, soFar());
      throw error;
    }
  },
});
