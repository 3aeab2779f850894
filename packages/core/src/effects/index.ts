// What a tool's `findOut` returns.
export { finished, notStarted, stillUnknown } from '../tool/call/find-out.ts';
export type { Finding, FindOutContext } from '../tool/tool.ts';
