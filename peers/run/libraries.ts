/** The libraries of the table, in its order. The key is the name of the adapter's file. */
export const libraries = {
  whoa: { name: 'Whoa', packages: [] },
  'ai-sdk': { name: 'AI SDK', packages: ['ai', '@ai-sdk/openai', '@ai-sdk/anthropic'] },
  'openai-agents': { name: 'OpenAI Agents', packages: ['@openai/agents'] },
  langgraph: {
    name: 'LangGraph.js',
    packages: ['@langchain/langgraph', 'langchain', '@langchain/core', '@langchain/openai', '@langchain/anthropic'],
  },
  mastra: { name: 'Mastra', packages: ['@mastra/core', '@mastra/memory'] },
  pi: { name: 'pi', packages: ['@earendil-works/pi-coding-agent'] },
  tanstack: {
    name: 'TanStack AI',
    packages: ['@tanstack/ai', '@tanstack/ai-client', '@tanstack/ai-openai', '@tanstack/ai-anthropic'],
  },
} as const satisfies Record<string, { readonly name: string; readonly packages: readonly string[] }>;

export type LibraryKey = keyof typeof libraries;

export const libraryKeys = Object.keys(libraries) as LibraryKey[];
