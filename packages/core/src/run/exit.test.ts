import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** Runs a program that sets `settledAt`, and returns how many milliseconds later its process ended. */
function msUntilExit(program: string): number {
  const core = new URL('../index.ts', import.meta.url).href;
  const embed = new URL('../embed/index.ts', import.meta.url).href;
  const testing = new URL('../testing/index.ts', import.meta.url).href;
  const whole = `
    import { CancellationToken, createAgent, guard } from '${core}';
    import { waitUntilLevel } from '${embed}';
    import { createScriptedModel } from '${testing}';
    let settledAt = 0;
    process.on('exit', () => console.log(performance.now() - settledAt));
    ${program}
    settledAt = performance.now();`;
  const args = ['--no-warnings', '--conditions=@whoa/source', '--input-type=module', '-e', whole];
  return Number(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

// The graceful ladder takes 12 s; a busy machine may take a few to end a process.
const AT_ONCE_MS = 6_000;

test('a settled run lets the process end, though the token above it is cancelled and never disposed', () => {
  const ms = msUntilExit(`
    const token = new CancellationToken();
    const model = createScriptedModel([['one ', { waitMs: 60_000 }, 'two']]);
    const run = createAgent({ name: 'a', model }).run('x', { token });
    for await (const event of run.events) if (event.type === 'text') token.cancel();
    await run.outcome;`);
  expect(ms).toBeLessThan(AT_ONCE_MS);
});

test('a guard and an aborted signal do not keep the process alive', () => {
  const ms = msUntilExit(`
    const token = new CancellationToken();
    const { signal } = token;
    const work = guard((work) => new Promise((_, reject) => work.signal.addEventListener('abort', reject)), { name: 'g', token });
    token.cancel({}, { mode: 'now' });
    await work.catch(() => {});
    if (!signal.aborted) throw new Error('not told');`);
  expect(ms).toBeLessThan(AT_ONCE_MS);
});

test('a wait for work that ended during a drain does not keep the process alive', () => {
  const ms = msUntilExit(`
    const token = new CancellationToken();
    const waiting = waitUntilLevel(new Promise((resolve) => setTimeout(resolve, 20)), token, 'kill');
    token.cancel();
    await waiting;`);
  expect(ms).toBeLessThan(AT_ONCE_MS);
});
