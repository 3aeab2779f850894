// The agent that both sides run: it searches for a while, books a table and reports it. Effects outside are written to a file.
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { type Agent, createAgent, defineTool } from '@whoa/core';
import { createScriptedModel } from '@whoa/core/testing';
import { z } from 'zod';

export const tenant = 'acme';
/** How long a worker may be silent before its work goes to another: BullMQ's lock and Whoa's lease. */
export const SILENCE_TIMEOUT_MS = 1_500;

function note(folder: string, line: string): void {
  appendFileSync(`${folder}/log`, `${line}\n`);
}

export function count(folder: string, line: string): number {
  try {
    return readFileSync(`${folder}/log`, 'utf8')
      .split('\n')
      .filter((one) => one === line).length;
  } catch {
    return 0;
  }
}

/** Resolves when a line has been written `times` times. */
export async function waitForLine(folder: string, line: string, times = 1): Promise<void> {
  while (count(folder, line) < times) await wait(5);
}

export function createBooker(folder: string): Agent {
  const search = defineTool({
    name: 'search',
    description: 'Looks for a free table. Takes its time.',
    inputSchema: z.object({ request: z.string() }),
    execute: async ({ request }, { signal }) => {
      note(folder, `searching ${request}`);
      if (request.endsWith('slowly')) await wait(60_000, undefined, { signal });
      if (request.endsWith('later')) await wait(1_000, undefined, { signal });
      if (request.endsWith('briefly')) await wait(5, undefined, { signal });
      return 'free at eight';
    },
  });
  const book = defineTool({
    name: 'book',
    description: 'Books the table.',
    inputSchema: z.object({ request: z.string() }),
    effects: 'write',
    execute: ({ request }) => {
      note(folder, `booked ${request}`);
      // A worker dies, or blocks its event loop for a long time, just after the booking.
      if (request.endsWith('dying') && count(folder, `booked ${request}`) === 1) process.kill(process.pid, 'SIGKILL');
      if (request.endsWith('blocked') && count(folder, `booked ${request}`) === 1) block(3 * SILENCE_TIMEOUT_MS);
      return 'booked';
    },
  });
  // A model that calls the tools in turn, and believes what the history says after a crash.
  const model = createScriptedModel([
    ({ messages }) => {
      const last = messages.findLastIndex(({ role }) => role === 'user');
      const request = JSON.stringify(messages[last]!.content).replaceAll('"', '');
      if (request.includes('It is not known whether')) return ['I do not know whether it is booked: please check.'];
      const next = ['search', 'book'][messages.slice(last).filter(({ role }) => role === 'tool').length];
      return next === undefined ? ['Your table is booked.'] : [{ call: next, input: { request } }];
    },
  ]);
  return createAgent({ name: 'booker', model, tools: [search, book] });
}

function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until) {
    // Nothing else in this process runs.
  }
}
