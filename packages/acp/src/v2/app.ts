import type { AgentApp, Stream } from '@agentclientprotocol/sdk';
import * as acp from '@agentclientprotocol/sdk/experimental/v2';
import { agentProtocolRouter } from '@agentclientprotocol/sdk/experimental/v2';
import { authenticate, toAgentInfo } from '../capabilities.ts';
import { type PromptBlock, toContent } from '../content.ts';
import type { AcpOptions } from '../options.ts';
import type { Session } from '../session/session.ts';
import { toSessionRequest } from '../session/session-request.ts';
import type { Sessions } from '../session/sessions.ts';
import type { AppOptions } from '../v1/app.ts';
import { settingsV2 } from './adapter.ts';
import { createV2Client } from './client.ts';

/** Creates the app for the v2 draft: a prompt gets its response when it is in the history, and its end is an update. */
export function createV2App({ options, sessions, onClient }: AppOptions): acp.AgentApp {
  const { agent } = acp.methods;
  const toSettings = ({ record }: Session) => ({ configOptions: settingsV2(options.settings ?? [], record.settings) });
  return (
    acp
      .agent({ name: 'whoa' })
      .onConnect(({ client }) => onClient(createV2Client(client)))
      .onRequest(agent.initialize, () => introduceV2(options))
      .onRequest(agent.session.prompt, (asked) => promptV2(sessions, asked))
      // Already handled on the wire.
      .onNotification(agent.session.cancel, () => {})
      .onRequest(agent.session.new, async ({ params, signal }) => {
        const session = await sessions.create(toSessionRequest(params), signal);
        return { sessionId: session.record.id, ...toSettings(session) };
      })
      .onRequest(agent.session.resume, async ({ params, signal }) => {
        const session = await sessions.resume(params.sessionId, toSessionRequest(params), signal);
        if (params.replayFrom != null) await session.replay();
        return toSettings(session);
      })
      .onRequest(agent.session.list, ({ params }) => sessions.list(params))
      .onRequest(agent.session.close, ({ params }) => sessions.close(params.sessionId))
      .onRequest(agent.session.delete, ({ params }) => sessions.remove(params.sessionId))
      .onRequest(agent.session.setConfigOption, async ({ params: { sessionId, configId: id, value } }) =>
        toSettings(await sessions.choose(sessionId, { id, value })),
      )
      .onRequest(agent.auth.login, async ({ params }) => {
        const obstacle = await authenticate(options, params.methodId);
        if (obstacle !== undefined) throw acp.RequestError.invalidParams(undefined, obstacle);
      })
      .onRequest(agent.toolCall.cancel, ({ params }) => {
        sessions.cancelCall(params, 'tool_call/cancel', { toolCallId: params.toolCallId });
      })
  );
}

function introduceV2(options: AcpOptions): acp.InitializeResponse {
  const { info, authMethods, mcp } = toAgentInfo(options);
  return {
    protocolVersion: acp.PROTOCOL_VERSION,
    info,
    capabilities: {
      session: {
        prompt: { image: {}, embeddedContext: {} },
        mcp: { ...(mcp.stdio && { stdio: {} }), ...(mcp.http && { http: {} }) },
        delete: {},
        ...(options.additionalDirectories && { additionalDirectories: {} }),
      },
    },
    authMethods: authMethods.map(({ id: methodId, name, description, terminal }) => {
      const method = { methodId, name, ...(description !== undefined && { description }) };
      if (terminal === undefined) return { type: 'agent', ...method };
      const env = Object.entries(terminal.env ?? {}).map(([key, value]) => ({ name: key, value }));
      return { type: 'terminal', ...method, args: [...terminal.args], env };
    }),
  };
}

type PromptContext = acp.AgentRequestContext<acp.PromptRequest>;

async function promptV2(sessions: Sessions, { params, requestId }: PromptContext): Promise<acp.PromptResponse> {
  const { session, prompt } = sessions.claim(requestId, params.sessionId);
  const { inserted, end } = session.start(prompt, toContent(params.prompt as readonly PromptBlock[]));
  const messageId = await inserted;
  if (messageId !== undefined) return { messageId };
  const { stop, message } = await end;
  if (stop === 'error') throw acp.RequestError.internalError(undefined, message);
  throw acp.RequestError.requestCancelled();
}

/** Chooses the protocol version from the client's first valid `initialize`. */
export function connectByVersion(stream: Stream, v1: AgentApp, parts: AppOptions): void {
  agentProtocolRouter().withV1(v1).withV2(createV2App(parts)).connect(stream);
}
