import type { InitializeResponse } from '@agentclientprotocol/sdk';
import { CANCEL_CALL_METHOD, META, toAgentInfo } from '../capabilities.ts';
import type { AcpOptions } from '../options.ts';

/** The response to `initialize` in v1. It needs only the options, so it can be sent before anything else is loaded. */
export function introduceV1(options: AcpOptions): InitializeResponse {
  const { info, authMethods, mcp } = toAgentInfo(options);
  return {
    protocolVersion: 1,
    agentInfo: info,
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, audio: false, embeddedContext: true },
      mcpCapabilities: { http: mcp.http, sse: false },
      sessionCapabilities: {
        list: {},
        delete: {},
        resume: {},
        close: {},
        ...(options.additionalDirectories && { additionalDirectories: {} }),
      },
      _meta: { [META.cancelCall]: { method: CANCEL_CALL_METHOD } },
    },
    authMethods: authMethods.map(({ id, name, description, terminal }) => {
      const method = { id, name, ...(description !== undefined && { description }) };
      return terminal === undefined
        ? method
        : { type: 'terminal', ...method, args: [...terminal.args], ...(terminal.env && { env: { ...terminal.env } }) };
    }),
  };
}
