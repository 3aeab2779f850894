// A server of the task API, at a port that stays the same when another takes its place.
import { createAccess, createTaskApi, listen } from '@whoa/server';
import { openStore } from '../../tasks/open-store.ts';

const [location = '', port = '0'] = process.argv.slice(2);
const store = openStore(location);
const limits = { maxStreams: 1_000, requestsPerSecond: 10_000, requestsBurst: 10_000 };
const access = createAccess({ authenticate: () => 'ada', limits });
const listening = await listen(createTaskApi({ store, access }), { port: Number(port) });
process.once('SIGTERM', () => {
  listening[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', port: listening.port });
