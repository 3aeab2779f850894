// What the tools of a scenario did, written to a file at the moment they did it.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { now } from './clock.ts';
import type { PeerTool } from './peer.ts';

export interface Mark {
  readonly at: number;
  readonly tool: string;
  readonly what: 'start' | 'signal' | 'effect' | 'pid';
  readonly pid?: number;
}

export class Witness {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  mark(tool: string, what: Mark['what'], more: Partial<Mark> = {}): void {
    appendFileSync(this.#file, `${JSON.stringify({ at: now(), tool, what, ...more })}\n`);
  }

  marks(tool?: string, what?: Mark['what']): Mark[] {
    if (!existsSync(this.#file)) return [];
    return readFileSync(this.#file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Mark)
      .filter((mark) => (tool ?? mark.tool) === mark.tool && (what ?? mark.what) === mark.what);
  }

  has(tool: string, what: Mark['what']): boolean {
    return this.marks(tool, what).length > 0;
  }

  /** Returns at once. */
  quick(name = 'quick', onStart: () => void = () => {}): PeerTool {
    return this.#tool(name, () => {
      onStart();
      this.mark(name, 'effect');
      return `${name} is done`;
    });
  }

  /** Stops when its signal fires; without one it takes longer than any scenario. */
  polite(name = 'polite'): PeerTool {
    return this.#tool(
      name,
      (signal) =>
        new Promise((resolve, reject) => {
          const timer = setTimeout(() => resolve(`${name} is done`), 60_000).unref();
          const stop = (): void => {
            clearTimeout(timer);
            reject(signal?.reason as Error);
          };
          if (signal?.aborted) stop();
          else signal?.addEventListener('abort', stop, { once: true });
        }),
    );
  }

  /** Ignores its signal, and takes effect after some time. Without a time it never returns. */
  deaf(name = 'deaf', ms?: number, end: 'return' | 'throw' = 'return'): PeerTool {
    return this.#tool(
      name,
      () =>
        new Promise((resolve, reject) => {
          if (ms === undefined) return;
          setTimeout(() => {
            this.mark(name, 'effect');
            if (end === 'return') resolve(`${name} is done`);
            else reject(new Error(`${name} failed`));
          }, ms);
        }),
    );
  }

  /** Ignores its signal, and takes effect when it is let go. */
  gated(name: string, gate: Promise<void>): PeerTool {
    return this.#tool(name, async () => {
      await gate;
      this.mark(name, 'effect');
      return `${name} is done`;
    });
  }

  /** Starts a process with the signal, as the documentation of Node says. */
  child(name = 'child'): PeerTool {
    return this.#tool(
      name,
      (signal) =>
        new Promise((resolve, reject) => {
          const child = spawn('sleep', ['60'], { stdio: 'ignore', ...(signal && { signal }) });
          this.mark(name, 'pid', { pid: child.pid ?? 0 });
          child.once('error', reject);
          child.once('exit', () => resolve(`${name} is done`));
        }),
    );
  }

  #tool(name: string, work: (signal: AbortSignal | undefined) => string | Promise<string>): PeerTool {
    return {
      name,
      description: `The tool ${name}.`,
      execute: ({ signal }) => {
        this.mark(name, 'start');
        if (signal?.aborted) this.mark(name, 'signal');
        else signal?.addEventListener('abort', () => this.mark(name, 'signal'), { once: true });
        return work(signal);
      },
    };
  }
}
