// Protect a plain function that does not support cancellation, in your own loop.
import { CancellationToken, guard, isCancelledError } from '@whoa/core';
import { createLateResults } from '@whoa/core/embed';

/** Third-party code: slow, and it ignores its signal. */
async function sendReport(to: string): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 500));
  return `sent to ${to}`;
}

const token = new CancellationToken({ name: 'my loop' });
const lateResults = createLateResults();

// A user presses Stop after 50 ms: ask, wait 100 ms, then stop waiting.
setTimeout(() => token.cancel({ kind: 'user', by: 'anna' }, { mode: { abortMs: 100 } }), 50);

const started = Date.now();
const after = (): string => `${Math.round((Date.now() - started) / 50) * 50} ms`;
try {
  console.log(await guard(() => sendReport('anna@example.org'), { name: 'send report', token, lateResults }));
} catch (error) {
  if (!isCancelledError(error)) throw error;
  console.log(`after ${after()}: ${error.message}; it did not listen, so it was abandoned`);
}

// The function keeps running: JavaScript cannot be killed. Its late result changes nothing and is recorded.
await new Promise((resolve) => setTimeout(resolve, 400));
const [work] = lateResults.entries();
console.log(
  `after ${after()}: ${work?.name} came back late: ${work?.late?.state === 'finished' ? String(work.late.value) : 'no'}`,
);
token[Symbol.dispose]();
