import { type ListeningServer, listen } from '@whoa/server';

/** Listens on a port. Its errors say what to do. */
export async function listenAt(
  handler: Parameters<typeof listen>[0],
  { host = '127.0.0.1', port }: { host?: string; port: number },
): Promise<ListeningServer> {
  try {
    return await listen(handler, { host, port });
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice = code === 'EADDRINUSE' ? `port ${port} is in use; use --port 0 to choose a free port` : message;
    throw new Error(`cannot listen on ${host}: ${advice}`, { cause: error });
  }
}
