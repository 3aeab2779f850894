// Make third-party agents stop.
export { proxyAcp } from './proxy.ts';
export type { AcpProxy, ProxiedAgent, ProxyEvent } from './options.ts';
