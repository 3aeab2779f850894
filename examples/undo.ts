// Cancel a trip that is half booked, and undo the bookings.
import { setTimeout as wait } from 'node:timers/promises';
import { createAgent, defineTool, formatStopReport } from '@whoa/core';
import { z } from 'zod';
import { exampleModel } from './shared/model.ts';

const booked = new Set<string>();

/** Must not be interrupted, and can be taken back. */
const book = defineTool({
  name: 'book',
  description: 'Books a hotel, a flight or a car.',
  inputSchema: z.object({ what: z.string() }),
  whenCancelled: 'finish',
  timeoutMs: 5_000,
  effects: 'write',
  exclusive: () => ['bookings'],
  execute: async ({ what }) => {
    await wait(150);
    booked.add(what);
    console.log(`  booked ${what}`);
    return { content: `Booked ${what}.`, details: { what } };
  },
  undo: async ({ input }) => {
    await wait(50);
    booked.delete(input.what);
    console.log(`  took back ${input.what}`);
  },
});

const { model, close } = await exampleModel([
  {
    parts: [
      { text: 'I will book everything. ' },
      { call: 'book', input: { what: 'the hotel' } },
      { call: 'book', input: { what: 'the flight' } },
      { call: 'book', input: { what: 'the car' } },
    ],
  },
]);
const agent = createAgent({ name: 'travel agent', model, tools: [book], concurrency: 1 });
const run = agent.run('Book me a trip to Lisbon: hotel, flight, car.');
let started = 0;
for await (const event of run.events) {
  // Cancel during the second booking: it finishes, the third never starts, and both are undone.
  if (event.type === 'call-start' && ++started === 2)
    run.cancel({ kind: 'user', message: 'not Lisbon' }, { undo: true });
}
const outcome = await run.outcome;
console.log();
if (outcome.status === 'cancelled') console.log(formatStopReport(outcome.stop));
console.log(`still booked: ${[...booked].join(', ') || 'nothing'}`);
await close();
