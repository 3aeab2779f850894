import type { AcpOptions, AuthMethod } from './options.ts';

/** Stops one call in v1, which has no method for that. */
export const CANCEL_CALL_METHOD = '_whoa/tool_call/cancel';

/** The names of our additions to messages. */
export const META = {
  cancelled: 'whoa/cancelled',
  usage: 'whoa/usage',
  report: 'whoa/stopReport',
  cancelCall: 'whoa/cancelCall',
  waiting: 'whoa/waiting',
} as const;

/** The registry of agents accepts only those that say how users authenticate. */
const FROM_ENVIRONMENT: AuthMethod = {
  id: 'environment',
  name: 'API key from the environment',
  description: "Set the key of your model's provider in the environment of this agent, in the editor's settings.",
};

const INFO = { name: 'whoa', title: 'Whoa', version: '0.1.0' };

/** How this agent describes itself, in both versions. */
export function toAgentInfo(options: AcpOptions): {
  readonly info: { readonly name: string; readonly title?: string; readonly version: string };
  readonly authMethods: readonly AuthMethod[];
  readonly mcp: { readonly stdio: boolean; readonly http: boolean };
} {
  const { info: { title, ...info } = INFO, authMethods = [], mcp = {} } = options;
  return {
    info: { ...info, ...(title !== undefined && { title }) },
    authMethods: authMethods.length > 0 ? authMethods : [FROM_ENVIRONMENT],
    mcp: { stdio: mcp.stdio ?? false, http: mcp.http ?? false },
  };
}

/** Authenticates the user with one of our methods. Returns why not, for any other. */
export async function authenticate(options: AcpOptions, methodId: string): Promise<string | undefined> {
  const { authMethods } = toAgentInfo(options);
  const method = authMethods.find(({ id }) => id === methodId);
  if (method === undefined) return `unknown method '${methodId}'; use ${authMethods.map(({ id }) => id).join(' or ')}`;
  if (method.terminal !== undefined) return `run the command of '${methodId}' in a terminal`;
  await options.authenticate?.(methodId);
  return undefined;
}
