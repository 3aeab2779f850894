import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { Probe } from '../witness/witness.ts';

type Script = Parameters<typeof startLoopbackProvider>[0]['script'];

/** What surrounds an agent: a model that follows a script, a witness, and an empty folder. */
export interface Harness extends AsyncDisposable {
  readonly provider: LoopbackProvider;
  readonly witness: Probe;
  readonly folder: string;
}

/** Starts a model and a witness. `port` is where the model listens; by default a free one. */
export async function startHarness(script: (witness: Probe) => Script, port = 0): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-check-'));
  const witness = await Probe.start();
  const provider = await startLoopbackProvider({ script: script(witness), port });
  return {
    provider,
    witness,
    folder,
    async [Symbol.asyncDispose]() {
      await Promise.all([provider.close(), witness[Symbol.asyncDispose]()]);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
