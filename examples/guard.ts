// Protect a plain function that knows nothing of cancellation, in a loop of your own.
import { CancellationToken, createLedger, guard, isCancelledError } from '@whoa/core';

/** Somebody else's code: slow, and deaf. */
async function sendReport(to: string): Promise<string> {
  await new Promise((resolve) => setTimeout(resolve, 500));
  return `sent to ${to}`;
}

const token = new CancellationToken({ name: 'my loop' });
const ledger = createLedger();

// Somebody presses stop after 50 ms: ask, wait 100 ms, then stop waiting.
setTimeout(() => token.cancel({ kind: 'user', by: 'anna' }, { mode: { abortMs: 100 } }), 50);

const started = Date.now();
const after = (): string => `${Math.round((Date.now() - started) / 50) * 50} ms`;
try {
  console.log(await guard(() => sendReport('anna@example.org'), { name: 'send report', token, ledger }));
} catch (error) {
  if (!isCancelledError(error)) throw error;
  console.log(`after ${after()}: ${error.message}; it did not listen, so it was abandoned`);
}

// The function runs on: JavaScript cannot be killed. Its late result changes nothing and is written down.
await new Promise((resolve) => setTimeout(resolve, 400));
const [work] = ledger.entries();
console.log(
  `after ${after()}: ${work?.name} came back late: ${work?.late?.state === 'finished' ? String(work.late.value) : 'no'}`,
);
token[Symbol.dispose]();
