import * as acp from '@agentclientprotocol/sdk';
import { authenticate, CANCEL_CALL_METHOD } from '../capabilities.ts';
import { type PromptBlock, toContent } from '../content.ts';
import type { AcpOptions } from '../options.ts';
import type { Client } from '../session/client.ts';
import type { Session } from '../session/session.ts';
import { toSessionRequest } from '../session/session-request.ts';
import type { Sessions } from '../session/sessions.ts';
import { metaOfEnd, settingsV1 } from './adapter.ts';
import { introduceV1 } from './agent-info.ts';
import { createV1Client } from './client.ts';

export interface AppOptions {
  readonly options: AcpOptions;
  readonly sessions: Sessions;
  /** Called when the client is known, before its first request is handled. */
  readonly onClient: (client: Client) => void;
}

/** Adds one method to an app. */
export type V1Method = (app: acp.AgentApp) => acp.AgentApp;

/** The methods of v1. Their order does not matter: the wire decides which prompts a cancel reaches. */
export function methodsV1({ options, sessions, onClient }: AppOptions): V1Method[] {
  const { agent } = acp.methods;
  const toSettings = ({ record }: Session) => ({ configOptions: settingsV1(options.settings ?? [], record.settings) });
  let capabilities: acp.ClientCapabilities = {};
  return [
    (app) => app.onConnect(({ client }) => onClient(createV1Client(client, () => capabilities))),
    (app) =>
      app.onRequest(agent.initialize, ({ params }) => {
        capabilities = params.clientCapabilities ?? {};
        return introduceV1(options);
      }),
    (app) => app.onRequest(agent.session.prompt, (asked) => promptV1(sessions, asked)),
    // Already handled on the wire.
    (app) => app.onNotification(agent.session.cancel, () => {}),
    (app) =>
      app.onRequest(agent.session.new, async ({ params, signal }) => {
        const session = await sessions.create(toSessionRequest(params), signal);
        return { sessionId: session.record.id, ...toSettings(session) };
      }),
    (app) =>
      app.onRequest(agent.session.load, async ({ params, signal }) => {
        const session = await sessions.resume(params.sessionId, toSessionRequest(params), signal);
        await session.replay();
        return toSettings(session);
      }),
    (app) =>
      app.onRequest(agent.session.resume, async ({ params, signal }) =>
        toSettings(await sessions.resume(params.sessionId, toSessionRequest(params), signal)),
      ),
    (app) => app.onRequest(agent.session.list, ({ params }) => sessions.list(params)),
    (app) => app.onRequest(agent.session.close, ({ params }) => sessions.close(params.sessionId)),
    (app) => app.onRequest(agent.session.delete, ({ params }) => sessions.remove(params.sessionId)),
    (app) =>
      app.onRequest(agent.session.setConfigOption, async ({ params: { sessionId, configId: id, value } }) =>
        toSettings(await sessions.choose(sessionId, { id, value })),
      ),
    (app) =>
      app.onRequest(agent.authenticate, async ({ params }) => {
        const obstacle = await authenticate(options, params.methodId);
        if (obstacle !== undefined) throw acp.RequestError.invalidParams(undefined, obstacle);
      }),
    (app) =>
      app.onRequest(CANCEL_CALL_METHOD, readCallName, ({ params }) => {
        sessions.cancelCall(params, CANCEL_CALL_METHOD);
        return {};
      }),
  ];
}

/** Creates the v1 app. */
export function createV1App(methods: readonly V1Method[]): acp.AgentApp {
  return methods.reduce((app, add) => add(app), acp.agent({ name: 'whoa' }));
}

type PromptContext = acp.AgentRequestContext<acp.PromptRequest>;

async function promptV1(sessions: Sessions, { params, requestId }: PromptContext): Promise<acp.PromptResponse> {
  const { session, prompt } = sessions.claim(requestId, params.sessionId);
  const end = await session.start(prompt, toContent(params.prompt as readonly PromptBlock[])).end;
  if (end.stop === 'error') throw acp.RequestError.internalError(metaOfEnd(end)._meta, end.message);
  return { stopReason: end.stop, ...metaOfEnd(end) };
}

function readCallName(params: unknown): { sessionId: string; toolCallId: string } {
  const { sessionId, toolCallId } = (params ?? {}) as { sessionId?: unknown; toolCallId?: unknown };
  if (typeof sessionId !== 'string' || typeof toolCallId !== 'string') {
    throw acp.RequestError.invalidParams(undefined, 'sessionId and toolCallId are required');
  }
  return { sessionId, toolCallId };
}
