import { RequestError } from '@agentclientprotocol/sdk';
import type { McpServer } from '../options.ts';

export interface SessionRequest {
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: readonly McpServer[];
}

/** The fields of a request that opens a session, in both versions. */
interface OpeningParams {
  readonly cwd: string;
  readonly additionalDirectories?: readonly string[] | null;
  readonly mcpServers?: readonly unknown[] | null;
}

export function toSessionRequest({ cwd, additionalDirectories, mcpServers }: OpeningParams): SessionRequest {
  const servers = (mcpServers ?? []).map(toMcpServer);
  return { cwd, additionalDirectories: additionalDirectories ?? [], mcpServers: servers };
}

/** In v1, a server on standard input and output has no type. */
function toMcpServer(server: unknown): McpServer {
  const { type = 'stdio', name, command, args, env, url, headers } = server as Record<string, unknown>;
  const called = String(name);
  if (type === 'stdio') {
    return { type, name: called, command: String(command), args: (args as string[]) ?? [], env: toRecord(env) };
  }
  if (type === 'http') return { type, name: called, url: String(url), headers: toRecord(headers) };
  const why = type === 'sse' ? '; sse is deprecated' : '';
  throw RequestError.invalidParams(undefined, `'${called}': use http or stdio${why}`);
}

function toRecord(pairs: unknown): Record<string, string> {
  const list = Array.isArray(pairs) ? (pairs as { name: string; value: string }[]) : [];
  return Object.fromEntries(list.map(({ name, value }) => [name, value]));
}
