import type { Tool } from '../tool/tool.ts';

/** Written by hand: it must work in browsers and without waiting, and `crypto.subtle` only answers later. */
function hash(text: string, seed: number): string {
  let value = seed;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 16_777_619);
  return (value >>> 0).toString(16).padStart(8, '0');
}

/** Returns a name that changes with an agent's instructions or the tools that its model sees. It protects nothing. */
export function hashVersion(tools: readonly Tool[], instructions = ''): string {
  const shown = tools.map(({ name, description, inputJsonSchema, effects }) => {
    return [name, description, effects, inputJsonSchema];
  });
  const text = JSON.stringify([instructions, shown]);
  return hash(text, 0x811c9dc5) + hash(text, 0x01000193);
}
