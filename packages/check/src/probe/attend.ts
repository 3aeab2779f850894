import { connect } from 'node:net';

/** The name of the tool that the kit's own MCP server offers. Hosts put the name of the server before it. */
export const PROBE_TOOL = 'probe_run';

/** A probe that is a call in the process of an agent. */
interface ProbeCall {
  readonly port: number;
  readonly key: string;
  readonly mode: string;
  /** Ends it early; one that ignores signals has none. */
  readonly signal?: AbortSignal | undefined;
}

/** Stays until the kit tells it to finish, its signal fires or the kit is gone. Returns which of them it was. */
export function attend({ port, key, mode, signal }: ProbeCall): Promise<'finished' | 'stopped' | 'gone'> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.write(`${JSON.stringify({ key, role: 'root', mode })}\n`);
    const stop = (): void => {
      socket.end();
      resolve('stopped');
    };
    socket.once('data', () => {
      socket.end('finished\n');
      resolve('finished');
    });
    socket.on('error', () => {});
    socket.once('close', () => {
      signal?.removeEventListener('abort', stop);
      resolve('gone');
    });
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
}
