import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** As much of pi's agent as is measured. */
export interface PiAgent {
  prompt(text: string): Promise<unknown>;
  abort(): void;
  subscribe(listener: (event: { type: string; assistantMessageEvent?: { type: string } }) => void): unknown;
}

// The newest version whose dependencies can be had everywhere.
const VERSION = '0.87.1';

/** pi's agent loop on a model at `url`, fetched into `.cache` on first use; a string says why it is not available. */
export async function loadPiAgent(url: string): Promise<(() => PiAgent) | string> {
  const folder = join(import.meta.dirname, '../../.cache/peers', `pi-agent-${VERSION}`);
  const modules = join(folder, 'node_modules/@earendil-works');
  if (!existsSync(join(modules, 'pi-agent-core'))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "private": true }');
    const names = ['pi-agent-core', 'pi-ai'].map((name) => `@earendil-works/${name}@${VERSION}`);
    const installed = spawnSync(
      'npm',
      ['install', '--ignore-scripts', '--no-audit', '--no-fund', '--silent', ...names],
      {
        cwd: folder,
        encoding: 'utf8',
        timeout: 180_000,
      },
    );
    if (installed.status !== 0) return 'it could not be installed';
  }
  try {
    const core = (await import(join(modules, 'pi-agent-core/dist/index.js'))) as {
      Agent: new (options: unknown) => PiAgent;
    };
    const wire = (await import(join(modules, 'pi-ai/dist/api/openai-completions.js'))) as Record<string, unknown>;
    const streamFn = wire['streamSimpleOpenAICompletions'] ?? wire['streamSimple'];
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
    const limits = { contextWindow: 100_000, maxTokens: 1_000 };
    const model = {
      id: 'm',
      name: 'm',
      api: 'openai-completions',
      provider: 'loopback',
      baseUrl: url,
      reasoning: false,
      input: ['text'],
      cost,
      ...limits,
    };
    return () =>
      new core.Agent({ initialState: { systemPrompt: '', model, tools: [] }, getApiKey: () => 'none', streamFn });
  } catch (error) {
    return `it could not be loaded: ${(error as Error).message}`;
  }
}
