import { type AgentContext, methods } from '@agentclientprotocol/sdk/experimental/v2';
import { type Client, permissionOptions, toPermissionAnswer } from '../session/client.ts';
import { describeCallV2, toV2Update } from './adapter.ts';

/** Creates the client for v2. It offers no files: v2 removed them. */
export function createV2Client(client: AgentContext): Client {
  return {
    update: (sessionId, update) =>
      client.notify(methods.client.session.update, { sessionId, update: toV2Update(update) }),
    async ask(sessionId, { call, always }, { signal }) {
      const { outcome } = await client.request(
        methods.client.session.requestPermission,
        {
          sessionId,
          title: call.title ?? call.callId,
          subject: { type: 'tool_call', toolCall: describeCallV2(call) },
          options: permissionOptions(always),
        },
        { cancellationSignal: signal, stopWaitingOnCancel: true },
      );
      return toPermissionAnswer(outcome);
    },
    files: () => ({}),
  };
}
