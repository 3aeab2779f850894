// Declarations that code blocks in the docs assume: values from an earlier block, and the reader's own.
declare const model: import('@whoa/core/model').Model & import('ai').LanguageModel;
declare const agent: import('@whoa/core').Agent;
declare const token: import('@whoa/core').CancellationToken;
declare const containment: import('@whoa/tools').Containment;
declare const tools: import('ai').ToolSet;
declare function toolsFor(cwd: string): import('@whoa/core').Tool[];

declare const createTaskStore: typeof import('@whoa/tasks').createTaskStore;
declare const createMyStore: (options: object) => import('@whoa/tasks').TaskStore;
declare const createMyDriver: (
  url: string,
  rules: import('@whoa/tasks/store').StoreRules,
) => import('@whoa/tasks/store').StoreDriver;
declare const store: import('@whoa/tasks').TaskStore;
declare const queue: import('bullmq').Queue;
declare const task: import('@whoa/tasks').TaskRef;
declare const id: string;
declare const taskId: string;
declare const sha256: string;
declare const channel: import('@whoa/tasks/compat').EventChannel;

/** A payment provider's client. */
declare const charge: import('@whoa/core').Tool;
declare const payments: {
  close(): Promise<void>;
  charge(request: { readonly cents: number; readonly idempotencyKey: string }): Promise<string>;
  search(query: {
    readonly idempotencyKey: string;
    readonly signal: AbortSignal;
  }): Promise<{ readonly status: string; readonly cents: number } | undefined>;
};

declare function readSession(request: Request): Promise<{ readonly user: string } | undefined>;

declare const history: import('@whoa/server').ChatHistory;
declare const from: string;
declare const text: string;
declare const messageId: string;
declare function acknowledge(): void;
declare function send(to: string, text: string): void;
declare function askUser(message: string, context: { readonly signal: AbortSignal }): Promise<boolean>;

/** Not installed here: only the part that the pages use. */
declare module 'next/server' {
  export function after(task: Promise<unknown>): void;
}
