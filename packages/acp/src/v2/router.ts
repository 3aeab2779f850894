import type { AgentApp, Stream } from '@agentclientprotocol/sdk';
import { agentProtocolRouter } from '@agentclientprotocol/sdk/experimental/v2';
import type { AppOptions } from '../v1/app.ts';
import { createV2App } from './app.ts';

/** Lets a client choose the version it speaks by its first valid `initialize`. */
export function connectByVersion(stream: Stream, v1: AgentApp, parts: AppOptions): void {
  agentProtocolRouter().withV1(v1).withV2(createV2App(parts)).connect(stream);
}
