// Stop an agent mid-sentence, and continue from what it had written.
//   node examples/stop-a-run.ts                             a scripted provider on this machine
//   ANTHROPIC_API_KEY=your-key node examples/stop-a-run.ts         the real one
import { createAgent, formatStopReport } from '@whoa/core';
import { exampleModel } from './shared/model.ts';

const story = [
  'Once upon a time ',
  'there was a compiler ',
  'that never ',
  'stopped ',
  'optimising, ',
  'until one day ',
];
const { model, close } = await exampleModel([
  { parts: [{ text: [...story, { stall: true }, 'it halted.'] }] },
  { parts: [{ text: 'It was about a compiler that never stopped optimising.' }] },
]);
const agent = createAgent({ name: 'storyteller', model, instructions: 'Tell long stories.' });

// Prompt it, and stop it as soon as it has written a little.
const run = agent.run('Tell me a story.');
for await (const event of run.events) {
  if (event.type === 'text') process.stdout.write(event.text);
  if (run.text.length > 80) run.cancel({ kind: 'user', message: 'that is enough', by: 'anna', via: 'example' });
}
console.log(' ▪\n');

const outcome = await run.outcome;
if (outcome.status === 'cancelled') console.log(formatStopReport(outcome.stop));
console.log(`kept: ${outcome.text.length} characters; usage so far: ${JSON.stringify(outcome.usage)}\n`);

// The transcript is valid without changes: the next turn sees the text from before the stop.
const next = await agent.run('What was it about?', { history: outcome.messages }).outcome;
console.log(next.text);
await close();
