// Agents for tests and pictures of the console: the words of their models are scripted, their tools are real.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Agent, createAgent, createAgentTool, defineTool, type Message, sleep } from '@whoa/core';
import { createScriptedModel, type ScriptedStep } from '@whoa/core/testing';
import { createTaskApprovals, type TaskApprovals } from '@whoa/tasks';
import { type Containment, createBashTool } from '@whoa/tools';
import { createEditTool, createGrepTool } from '@whoa/tools/internal';
import { z } from 'zod';
import { hostileStrings } from '../hostile-strings.ts';
import { forChange } from '../night.ts';

export interface ConsoleAgents {
  readonly agents: Readonly<Record<string, Agent>>;
  readonly approvals: TaskApprovals;
}

const WORD_MS = 25;
const RETRY = `export interface Delay {
  readonly base: number;
}

/** Spreads retries, so that they do not arrive together. */
export function jitter(base: number): number {
  return Math.random() * base * 0.2;
}

export function delay(attempt: number, { base }: Delay): number {
  return base * 2 ** attempt + jitter(base);
}
`;
const TESTS = `#!/bin/sh
printf '\\033[1;36mqueue\\033[0m \\033[2m> 4 files, 61 tests\\033[0m\\n'
printf ' \\033[32mok\\033[0m backoff.test.ts \\033[2m(18)\\033[0m \\033[32m212 ms\\033[0m\\n'
sleep 0.3
printf ' \\033[32mok\\033[0m lease.test.ts \\033[2m(22)\\033[0m \\033[33m1.9 s\\033[0m\\n'
sleep 0.3
printf ' \\033[31mno\\033[0m \\033[1mretry.test.ts\\033[0m: adds jitter to every delay\\n     \\033[31mexpected 118 to be within 20 of 100\\033[0m\\n'
printf ' .. drain.test.ts \\033[34mrunning\\033[0m\\n'
sleep 60
`;

/** Writes the folder that the agents work in. */
export function makeWorkspace(folder: string): void {
  const source = join(folder, 'packages/queue/src');
  mkdirSync(source, { recursive: true });
  writeFileSync(join(source, 'retry.ts'), RETRY);
  writeFileSync(
    join(source, 'retry.test.ts'),
    "it('adds jitter to every delay', async () => {\n  // jitter is random, so allow 20 ms\n});\n",
  );
  writeFileSync(join(folder, 'run-tests'), TESTS);
  chmodSync(join(folder, 'run-tests'), 0o755);
}

export function createConsoleAgents({ cwd, containment }: { cwd: string; containment: Containment }): ConsoleAgents {
  const approvals = createTaskApprovals({
    decide: ({ tool }) => ({ decision: ASKED.has(tool.name) ? 'ask' : 'allow' }),
  });
  const shared = { approve: approvals.approve };
  return {
    approvals,
    agents: {
      coder: createCoder({ cwd, containment, approve: approvals.approve }),
      editor: createAgent({
        ...shared,
        name: 'editor',
        model: script(EDITOR),
        tools: [createEditTool({ root: cwd }), deploy],
      }),
      host: createAgent({ ...shared, name: 'host', model: script([() => [ROOMS]]) }),
      asker: createAgent({ ...shared, name: 'asker', model: script(ASKER), tools: [askName, askRoom, readScreen] }),
      painter: createAgent({ ...shared, name: 'painter', model: script(PAINTER), tools: [paint] }),
      talker: createAgent({ ...shared, name: 'talker', model: script([() => [STORY]]) }),
      booker: createAgent({ ...shared, name: 'booker', model: script(BOOKER), tools: [book, lookUp] }),
      many: createAgent({
        ...shared,
        name: 'many',
        model: script(manyTurns(), 0),
        tools: [lookUp],
        budgets: { maxTurns: 1_000, maxCalls: 10_000 },
      }),
      hostile: createAgent({
        ...shared,
        name: 'hostile',
        model: script(HOSTILE, 0),
        tools: [echo],
        budgets: { maxTurns: 1_000, maxCalls: 10_000 },
      }),
      failing: createAgent({
        ...shared,
        name: 'failing',
        model: script([() => [{ fail: new Error('The provider refused: the quota is used up') }]]),
      }),
    },
  };
}

const ASKED: ReadonlySet<string> = new Set(['edit', 'deploy', 'hostile_ask']);

type Reply = () => readonly ScriptedStep[];

/** A model that gives these replies, one for each turn since the last message of a user. */
function script(replies: readonly Reply[], wordMs = WORD_MS) {
  const pick = ({ messages }: { messages: readonly Pick<Message, 'role'>[] }): readonly ScriptedStep[] => {
    const asked = messages.findLastIndex(({ role }) => role === 'user');
    const turn = messages.slice(asked).filter(({ role }) => role === 'assistant').length;
    return replies[turn]?.() ?? ['Done.'];
  };
  return createScriptedModel([pick], { wordMs });
}

const lookUp = defineTool({
  name: 'calendar_lookup',
  description: 'Looks a room up.',
  inputSchema: z.object({ query: z.string() }),
  effects: 'read',
  execute: ({ query }) => ({ content: `${query}: free`, details: { room: query, free: true } }),
});

const book = defineTool({
  name: 'calendar_book',
  description: 'Books a room.',
  inputSchema: z.object({ query: z.string() }),
  effects: 'write',
  whenCancelled: 'finish',
  timeoutMs: 60_000,
  async execute({ query }, { token }) {
    await sleep(8_000, { clock: token.clock, token });
    return { content: `Booked ${query}`, details: { eventId: 'e-118', room: query } };
  },
  undo: () => {},
});

const asking = { inputSchema: z.object({ query: z.string() }) };

const askName = defineTool({
  ...asking,
  name: 'ask_name',
  description: 'Asks for a name.',
  answeredBy: 'user',
  answerSchema: z.string(),
});

const askRoom = defineTool({
  ...asking,
  name: 'ask_room',
  description: 'Asks which room.',
  answeredBy: 'user',
  answerSchema: z.enum(['Oak', 'Elm']),
});

const readScreen = defineTool({
  ...asking,
  name: 'read_screen',
  description: 'Reads the screen of a page.',
  effects: 'read',
  answeredBy: 'client',
});

const deploy = defineTool({
  name: 'deploy',
  description: 'Runs a script.',
  inputSchema: z.object({ command: z.string() }),
  effects: 'execute',
  execute: () => ({ content: 'deployed' }),
});

const echo = defineTool({
  name: 'echo',
  description: 'Returns what it is given, in every field.',
  inputSchema: z.object({ shape: z.string(), command: z.string() }),
  effects: 'read',
  execute: ({ shape, command: text }) => ({ content: text, details: shapes(text)[shape] ?? { text } }),
});

/** One red pixel. */
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';

const paint = defineTool({
  name: 'paint',
  description: 'Returns a picture, and something that only says it is one.',
  inputSchema: z.object({ path: z.string() }),
  effects: 'read',
  execute: ({ path }) => ({
    content: [
      { type: 'text', text: path },
      { type: 'image', mediaType: 'image/png', data: PIXEL },
      { type: 'image', mediaType: 'image/svg+xml', data: Buffer.from('<svg onload="alert(1)"/>').toString('base64') },
    ],
  }),
});

/** A string in every field of every kind of details. */
function shapes(text: string): Record<string, never> {
  const output = { head: '', tail: text, bytes: text.length, lines: 1, omittedBytes: 0 };
  return {
    output: { command: text, output, exitCode: 1, signal: text, logPath: text },
    diff: {
      path: text,
      diff: `--- a\n+++ b\n@@ -1 +1 @@\n-${text.replaceAll('\n', ' ')}\n+${text.replaceAll('\n', ' ')}\n`,
    },
    matches: { pattern: text, matches: [{ path: text, line: 1, column: 1, text }] },
    files: { files: [text], truncated: true },
    plan: { plan: [{ content: text, status: 'pending' }] },
    json: { [text]: text, nested: [text] },
    file: { path: text, firstLine: 1, lines: 1, bytes: 1 },
  } as unknown as Record<string, never>;
}

const SHAPES = ['output', 'diff', 'matches', 'files', 'plan', 'json', 'file'];

/** All hostile strings, as text and through every shape of details, thirty a turn. */
/** Units test all of them for every change. */
export const shownHostile = forChange(hostileStrings, (_, index) => index % 5 === 0);
const HOSTILE: readonly Reply[] = Array.from({ length: Math.ceil(shownHostile.length / 30) }, (_, turn) => () => {
  const some = shownHostile.slice(turn * 30, turn * 30 + 30);
  return [
    some.join('\n'),
    ...some.map((text, index) => ({ call: 'echo', input: { shape: SHAPES[index % SHAPES.length], command: text } })),
  ];
});

const ROOMS =
  'Two rooms fit: Oak has a screen and eight seats, Elm has six seats and a projector. Both are free all afternoon. I will take Oak and invite the six of you, with a reminder an hour before.';

const STORY =
  'Oak is free at 4 pm as well, with the same screen. I am booking it for six and moving the invitation. '.repeat(40);

const BOOKER: readonly Reply[] = [
  () => [
    'Two rooms fit. I will look at Oak first. ',
    { call: 'calendar_lookup', input: { query: 'Oak, Tuesday 16:00' } },
  ],
  () => ['Oak is free, so I book it. ', { call: 'calendar_book', input: { query: 'Oak, Tuesday 16:00' } }],
  () => ['Oak is booked for Tuesday at 4 pm. '],
];

const ASKER: readonly Reply[] = [
  () => ['First the name. ', { call: 'ask_name', input: { query: 'Who is it for?' } }],
  () => ['Now the room. ', { call: 'ask_room', input: { query: 'Oak or Elm?' } }],
  () => ['Now the screen. ', { call: 'read_screen', input: { query: 'What is on it?' } }],
  () => ['It is booked.'],
];

const PAINTER: readonly Reply[] = [() => ['A picture. ', { call: 'paint', input: { path: 'red.png' } }]];

const EDIT = {
  path: 'packages/queue/src/retry.ts',
  edits: [
    {
      oldText: 'export function jitter(base: number): number {',
      newText: 'export function jitter(base: number, random = Math.random): number {',
    },
    { oldText: 'Math.random() * base', newText: 'random() * base' },
  ],
};

const DEPLOY = `set -euo pipefail
root=$(git rev-parse --show-toplevel)
cd "$root"

# scripts that were not called for 90 days
for file in scripts/deploy-blue.sh scripts/deploy-green.sh; do
  grep -rqF "$(basename "$file")" .github packages || git rm -q -- "$file"
done
printf '\u001b[2K\rall good\\n'
git push origin HEAD:\u202eniam && rm -rf ~/.cache/deploy`;

const EDITOR: readonly Reply[] = [
  () => ['I will remove what is no longer used. ', { call: 'deploy', input: { command: DEPLOY } }],
  () => ['Now the change itself. ', { call: 'edit', input: EDIT }],
];

function manyTurns(): Reply[] {
  return Array.from({ length: 100 }, (_, turn) => () => [
    `Turn ${turn + 1}: twenty rooms. `,
    ...Array.from({ length: 20 }, (_call, index) => ({
      call: 'calendar_lookup',
      input: { query: `room ${turn * 20 + index}` },
    })),
  ]);
}

function createCoder({
  cwd,
  containment,
  approve,
}: {
  cwd: string;
  containment: Containment;
  approve: TaskApprovals['approve'];
}): Agent {
  const researcher = createAgent({
    name: 'researcher',
    model: script([
      () => ['I read how others do it. ', { call: 'calendar_lookup', input: { query: 'retry libraries' } }],
      () => ['Most retry libraries accept a random source as an option. '.repeat(60)],
    ]),
    tools: [lookUp],
  });
  const reserve = defineTool({
    name: 'reserve_runner',
    description: 'Reserves a machine.',
    inputSchema: z.object({ query: z.string() }),
    effects: 'write',
    whenCancelled: 'finish',
    timeoutMs: 20_000,
    async execute(_, { token }) {
      await sleep(5_000, { clock: token.clock, token });
      return { content: 'reserved' };
    },
    undo: () => {},
  });
  const deaf = defineTool({
    name: 'index_docs',
    description: 'Ignores its signal.',
    inputSchema: z.object({ path: z.string() }),
    effects: 'read',
    execute: () => new Promise<string>(() => {}),
  });
  return createAgent({
    name: 'coder',
    approve,
    model: script([
      () => [
        'I will find where the retry delay is computed, and see whether the tree is clean. ',
        { call: 'grep', input: { pattern: 'jitter', path: 'packages/queue' } },
        { call: 'bash', input: { command: 'ls packages/queue/src' } },
      ],
      () => [
        'The test is flaky because jitter takes its chance from Math.random. I will let the test hand in its own, run the suite, and ask the researcher how others do it. ',
        { call: 'edit', input: EDIT },
        { call: 'bash', input: { command: './run-tests' } },
        { call: 'reserve_runner', input: { query: 'linux-4core, 20 min' } },
        { call: 'index_docs', input: { path: 'packages/queue' } },
        { call: 'researcher', input: { task: 'how do others seed jitter?' } },
      ],
    ]),
    tools: [
      createGrepTool({ root: cwd }),
      createEditTool({ root: cwd }),
      createBashTool({ cwd, containment }),
      reserve,
      deaf,
      createAgentTool(researcher, { description: 'Asks a researcher.' }),
    ],
  });
}
