// A server of the console and the task API, at a port that stays the same when another takes its place.
import {
  combineAuthenticators,
  createAccess,
  createConsoleHandler,
  createLogin,
  createTaskApi,
  createTokenAuthenticator,
  listen,
  USER_RIGHTS,
} from '@whoa/server';
import { openStore } from '../../tasks/open-store.ts';

const [location = '', port = '0', sha256 = ''] = process.argv.slice(2);
const store = openStore(location);
const tokens = createTokenAuthenticator([
  { sha256, tenant: 'acme', name: 'ann', rights: [...USER_RIGHTS, 'operate', 'halt'] },
]);
const login = createLogin({ tokens });
const limits = { maxStreams: 1_000, requestsPerSecond: 1_000, requestsBurst: 1_000 };
const access = createAccess({ authenticate: combineAuthenticators(tokens, login.authenticate), limits });
const agents = ['coder', 'editor', 'painter', 'talker', 'host', 'asker', 'booker', 'many', 'hostile', 'failing'];
const api = createTaskApi({ store, access, login, agents });
const page = createConsoleHandler();
const fetch = (request: Request): Promise<Response> =>
  (new URL(request.url).pathname.startsWith(page.path) ? page : api).fetch(request);
const listening = await listen({ fetch }, { port: Number(port) });
process.once('SIGTERM', () => {
  listening[Symbol.asyncDispose]()
    .then(() => store[Symbol.asyncDispose]())
    .then(
      () => process.disconnect(),
      (error: unknown) => process.emitWarning(error as Error),
    );
});
process.send?.({ type: 'listening', port: listening.port });
