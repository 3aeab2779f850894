import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type RequestPermissionRequest,
} from '@agentclientprotocol/sdk';
import type { ClientFiles } from '../options.ts';
import { type Client, permissionOptions, toPermissionAnswer } from '../session/client.ts';
import { describeCallV1, toV1Updates } from './adapter.ts';

/** Creates the client for v1. */
export function createV1Client(client: AgentContext, capabilities: () => ClientCapabilities): Client {
  return {
    async update(sessionId, update) {
      for (const words of toV1Updates(update))
        await client.notify(methods.client.session.update, { sessionId, update: words });
    },
    async ask(sessionId, { call, always }, { signal }) {
      const question: RequestPermissionRequest = {
        sessionId,
        toolCall: describeCallV1(call),
        options: permissionOptions(always),
      };
      const { outcome } = await client.request(
        methods.client.session.requestPermission,
        question,
        // Without `stopWaitingOnCancel`, a client that never responds would block the prompt forever.
        { cancellationSignal: signal, stopWaitingOnCancel: true },
      );
      return toPermissionAnswer(outcome);
    },
    files: (sessionId) => toClientFiles(client, sessionId, capabilities()),
  };
}

function toClientFiles(client: AgentContext, sessionId: string, { fs }: ClientCapabilities): ClientFiles {
  return {
    ...(fs?.readTextFile && {
      readText: async (path, { line, limit, signal }) => {
        const range = { ...(line !== undefined && { line }), ...(limit !== undefined && { limit }) };
        const options = { cancellationSignal: signal, stopWaitingOnCancel: true };
        const answer = await client.request(methods.client.fs.readTextFile, { sessionId, path, ...range }, options);
        // The response is untrusted.
        const content: unknown = (answer as { content?: unknown } | null)?.content;
        if (typeof content !== 'string') throw new Error('the response has no text');
        return content;
      },
    }),
    ...(fs?.writeTextFile && {
      writeText: async (path, content, { signal }) => {
        const options = { cancellationSignal: signal, stopWaitingOnCancel: true };
        await client.request(methods.client.fs.writeTextFile, { sessionId, path, content }, options);
      },
    }),
  };
}
