import { spawn } from 'node:child_process';
import { attend } from '../../packages/check/src/probe/attend.ts';
import type { Probe, ProbeMode } from '../../packages/check/src/probe/probe.ts';
import type { PeerTool } from './peer.ts';

/**
 * The tools of the scenarios. Each waits at the probe on `port`, under its own name, until it is released or stopped.
 */
export class PeerTools {
  readonly #port: number;

  constructor(port: number) {
    this.#port = port;
  }

  /** Returns immediately. */
  quick(name = 'quick', onStart: () => void = () => {}): PeerTool {
    return createTool(name, async () => {
      onStart();
      return this.#attend(name, 'quick');
    });
  }

  /** Stops when its signal fires. */
  polite(name = 'polite'): PeerTool {
    return createTool(name, (signal) => this.#attend(name, 'plain', signal));
  }

  /** Ignores its signal. */
  deaf(name = 'deaf'): PeerTool {
    return createTool(name, () => this.#attend(name, 'ignore-signals'));
  }

  /** Ignores its signal, and then fails. */
  rude(name = 'rude'): PeerTool {
    return createTool(name, async () => {
      await this.#attend(name, 'ignore-signals');
      throw new Error(`${name} failed`);
    });
  }

  async #attend(name: string, mode: ProbeMode, signal?: AbortSignal): Promise<string> {
    const end = await attend({ port: this.#port, key: name, mode, signal });
    if (end === 'stopped') throw signal?.reason;
    // After the scenario there is no run to return to.
    return end === 'finished' ? `${name} is done` : new Promise<never>(() => {});
  }
}

/** A tool that starts a process with its signal, as Node's documentation shows. */
export function createChildTool(name: string, probe: Probe): PeerTool {
  return createTool(
    name,
    (signal) =>
      new Promise((resolve, reject) => {
        const command = `exec ${probe.command(name, 'plain')}`;
        const child = spawn(command, { shell: true, stdio: 'ignore', ...(signal && { signal }) });
        child.once('error', reject);
        child.once('exit', () => resolve(`${name} is done`));
      }),
  );
}

function createTool(name: string, work: (signal: AbortSignal | undefined) => Promise<string>): PeerTool {
  return { name, description: `The tool ${name}.`, execute: ({ signal }) => work(signal) };
}
