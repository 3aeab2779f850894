import type { AgentApp, Stream } from '@agentclientprotocol/sdk';
import { agentProtocolRouter } from '@agentclientprotocol/sdk/experimental/v2';
import type { AppOptions } from '../v1/app.ts';
import { createV2App } from './app.ts';

/** Chooses the protocol version from the client's first valid `initialize`. */
export function connectByVersion(stream: Stream, v1: AgentApp, parts: AppOptions): void {
  agentProtocolRouter().withV1(v1).withV2(createV2App(parts)).connect(stream);
}
