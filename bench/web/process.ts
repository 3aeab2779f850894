import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createToken } from '@whoa/server';

export interface Usage {
  readonly rss: number;
  readonly heapUsed: number;
  readonly cpuMs: number;
}

/** A client: a tenant with its own token. */
export interface Client {
  readonly tenant: string;
  readonly token: string;
  readonly sha256: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function createClient(tenant: string): Client {
  const { token, sha256 } = createToken();
  return { tenant, token, sha256, headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' } };
}

export const BENCH: Client = createClient('bench');

/** A program of `children/` that reports when it is ready. */
export async function startChild(name: string, args: readonly string[]): Promise<ChildProcess> {
  const script = join(import.meta.dirname, `../children/${name}.ts`);
  const child = fork(script, [...args], { execArgv: ['--expose-gc', '--no-warnings'] });
  await once(child, 'message');
  return child;
}

/** A server in a separate process. `limited`: ours, with the default limits. */
export class Server implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly port: number;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(
    what: 'ours' | 'limited' | 'bare',
    config: object,
    clients: readonly Client[] = [BENCH],
  ): Promise<Server> {
    const script = join(import.meta.dirname, '../children/server.ts');
    const known = clients.map(({ tenant, sha256 }) => ({ tenant, sha256 }));
    const args = [what, JSON.stringify(config), JSON.stringify(known)];
    const child = fork(script, args, { execArgv: ['--expose-gc', '--no-warnings'] });
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new Server(child, port);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async usage(): Promise<Usage> {
    const answer = once(this.#child, 'message') as Promise<[Usage]>;
    this.#child.send('usage');
    return (await answer)[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }
}
