// A server of the task API: argv is a store's location and the hash of its only token. Reports its address.
import { createAccess, createTaskApi, createTokenAuthenticator, listen, USER_RIGHTS } from '@whoa/server';
import { openStore } from '../open-store.ts';

const [location = '', sha256 = ''] = process.argv.slice(2);
const access = createAccess({
  authenticate: createTokenAuthenticator([{ sha256, tenant: 'acme', name: 'ann', rights: USER_RIGHTS }]),
  audit: (event) => process.send!({ type: 'audit', event }),
});
const { port } = await listen(createTaskApi({ store: openStore(location), access }));
process.send!({ type: 'listening', port });
