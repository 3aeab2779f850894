import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Message } from '@whoa/core';
import { createContainment } from '@whoa/tools';
import { expect, test } from 'vitest';
import { createDemoAgent } from './demo-agent.ts';
import { createScript } from './script.ts';

const FIRST: readonly Message[] = [{ role: 'user', content: 'What can you do?' }];

test('a stopped call and a message during a run are answered, and nothing is started again or published', async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'whoa-demo-agent-'));
  try {
    await using containment = createContainment({ sandbox: { kind: 'none' } });
    const run = createDemoAgent({ containment, cwd }).run('Ship release 2.4', { history: FIRST });
    const calls: string[] = [];
    for await (const event of run.events) {
      if (event.type === 'call-start') calls.push(event.tool);
      if (event.type !== 'call-update' || !/test 2 passed/.test(JSON.stringify(event.partial))) continue;
      run.steer('Be quick');
      run.cancelCall(event.callId);
    }
    const { status, messages } = await run.outcome;
    expect([status, calls.toSorted()]).toEqual(['success', ['bash', 'read_changes']]);
    expect(JSON.stringify(messages.at(-1))).toMatch(
      /You said “Be quick”.* while I worked.*You stopped the tests after \d+ of 24, so I do not publish\./,
    );
  } finally {
    rmSync(cwd, { recursive: true });
  }
});

/** A run of the script in which calls end, and messages arrive, as the test says. */
function createRun() {
  const { nextReply, hooks } = createScript();
  const reply = (): string => JSON.stringify(nextReply({ messages: [...FIRST, ...FIRST] as never, tools: [] }));
  expect(reply()).toContain('read_changes');
  return {
    reply,
    end: (tool: string, state: string, content = '') =>
      hooks['call-end']?.({ result: { tool, state, content } } as never, {}),
    tell: (content: string) => hooks['steer-delivered']?.({ message: { role: 'user', content } } as never, {}),
  };
}

const passed = (count: number): string => Array.from({ length: count }, (_, n) => `test ${n + 1} passed`).join('\n');

test.each([
  ['interrupted', 14, 'finished', '', /^\["","You stopped the tests after 14 of 24, so I do not publish/],
  ['interrupted', 24, 'finished', '', /You stopped the tests after 24 of 24, so I do not publish/],
  ['failed', 13, 'finished', '', /Only 13 of 24 tests passed, so I do not publish/],
  ['finished', 24, 'interrupted', '', /you stopped the look at the changes, so I do not publish/],
  ['finished', 24, 'finished', 'Do not publish it', /^\["","You said “Do not publish it”, so I do not publish/],
  ['finished', 24, 'finished', 'Be quick', /You said “Be quick” while I worked.*publish_release/],
  ['finished', 24, 'finished', '', /^\["","All 24 tests passed.*publish_release/],
] as const)(
  'tests that are %s after %i, a look that is %s and the message “%s”: %s',
  (tests, count, look, words, said) => {
    const run = createRun();
    run.end('bash', tests, passed(count));
    run.end('read_changes', look);
    if (words !== '') run.tell(words);
    const reply = run.reply();
    expect(reply).toMatch(said);
    expect(reply.includes('publish_release')).toBe(said.source.includes('publish_release'));
  },
);

test('the reply after the release says how the call ended, and answers what was said too late', () => {
  const run = createRun();
  run.end('bash', 'finished', passed(24));
  run.end('read_changes', 'finished');
  run.reply();
  run.end('publish_release', 'finished');
  run.tell('Wait');
  expect(run.reply()).toMatch(/You said “Wait” while I published, so I read it only now\. .*The release is out/);
  run.tell('Thanks');
  expect(run.reply()).toMatch(/^\["You said “Thanks”\. I had nothing left to do/);
});
