import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LoopbackProvider, startLoopbackProvider } from '@whoa/ai-sdk/testing';
import { Probe } from '../probe/probe.ts';

type Script = Parameters<typeof startLoopbackProvider>[0]['script'];

/** What surrounds an agent: a model that follows a script, a probe, and an empty folder. */
export interface Harness extends AsyncDisposable {
  readonly provider: LoopbackProvider;
  readonly probe: Probe;
  readonly folder: string;
}

/** Starts a model and a probe. `port` is where the model listens; by default a free one. */
export async function startHarness(script: (probe: Probe) => Script, port = 0): Promise<Harness> {
  const folder = await mkdtemp(join(tmpdir(), 'whoa-check-'));
  const probe = await Probe.start(folder);
  const provider = await startLoopbackProvider({ script: script(probe), port });
  return {
    provider,
    probe,
    folder,
    async [Symbol.asyncDispose]() {
      await Promise.all([provider.close(), probe[Symbol.asyncDispose]()]);
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
