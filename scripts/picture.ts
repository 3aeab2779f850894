// Records a real run being stopped from another terminal and writes it as a moving picture: node scripts/picture.ts.
// The model follows a script; the terminals, the processes, the cancel and the report are real.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { createHome, type Terminal } from '../test/command/terminal.ts';
import { drawRecording, type Frame } from './picture/draw.ts';

const SAMPLE_MS = 60;
const KEY_MS = 45;
const READ_MS = 1_200;
const COLUMNS = 98;
const SCRIPT = {
  wordMs: 110,
  replies: [
    ["I'll run the whole test suite first. ", { call: 'bash', input: { command: './run-tests.sh | tee test.log' } }],
    ['All tests pass.'],
  ],
};
const TESTS = `#!/usr/bin/env bash
names=(parses prints rounds sorts merges retries resumes settles)
for i in "\${!names[@]}"; do sleep 0.7; echo "ok $((i + 1)) - \${names[i]}"; done; sleep 300
`;

const home = createHome({ 'script.json': JSON.stringify(SCRIPT), 'shop/run-tests.sh': TESTS });
home.env['WHOA_MODEL'] = 'scripted:../script.json';
home.whoa(['tasks']);
const agent = home.openTerminal({ columns: COLUMNS, rows: 18 });
const other = home.openTerminal({ columns: COLUMNS, rows: 8 });
const terminals = [agent, other];

async function enter(terminal: Terminal, text: string): Promise<void> {
  for (const key of text) {
    terminal.type(key);
    await wait(KEY_MS);
  }
  await wait(250);
  terminal.press('Enter');
}

/** Samples the terminals until the script is done. */
async function record(script: () => Promise<void>): Promise<Frame[]> {
  const frames: Frame[] = [];
  const from = performance.now();
  let isDone = false;
  const recording = script().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    frames.push({ atMs: performance.now() - from, screens: terminals.map((terminal) => terminal.seeStyled()) });
    await wait(SAMPLE_MS);
  }
  await recording;
  return frames;
}

try {
  agent.press('cd shop; chmod +x run-tests.sh; clear', 'Enter');
  await agent.waitFor(/^\$$/);
  await other.waitFor(/^\$$/);
  const frames = await record(async () => {
    await wait(400);
    await enter(agent, 'whoa run "Do the tests pass?"');
    await agent.waitFor(/why not:$/);
    await wait(READ_MS);
    await enter(agent, 'y');
    const seen = await agent.waitFor(/bash: ok 4/);
    const [, id = ''] = /whoa cancel (\S+)/.exec(seen)!;
    await enter(other, `whoa cancel ${id} --mode now --reason "wrong branch"`);
    await agent.waitFor(/settled\n\$$/);
    await other.waitFor(/settled\n\$$/);
    await wait(READ_MS);
    await enter(agent, 'echo $?');
    await agent.waitFor(/130/);
    await wait(READ_MS);
  });
  const file = join(import.meta.dirname, '../docs/whoa.svg');
  const svg = drawRecording(frames, {
    columns: COLUMNS,
    titles: ['one terminal: an agent at work', 'another terminal'],
    description: 'An agent runs a test suite; whoa cancel in another terminal stops it; both print the stop report.',
  });
  writeFileSync(file, svg);
  console.log(`docs/whoa.svg: ${frames.length} frames, ${Math.round(svg.length / 1024)} KiB`);
} finally {
  home[Symbol.dispose]();
}
