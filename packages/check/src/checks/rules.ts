import type { Protocol } from '../adapter.ts';
import type { Rule } from '../check.ts';

const ACP = 'ACP v1, Prompt Turn: Cancellation';
const ACP_REQUEST = 'ACP v1, Request Cancellation';
const MCP = 'MCP 2026-07-28, Cancellation';
const MCP_TASKS = 'MCP tasks 2026-07-28, tasks/cancel';
const A2A = 'A2A 1.0, CancelTask';
const AG_UI = 'AG-UI 1.0, RUN_FINISHED';

type Rules = Readonly<Partial<Record<Protocol, Rule>>>;

const must = (from: string, text: string): Rule => ({ from, level: 'MUST', text });
const should = (from: string, text: string): Rule => ({ from, level: 'SHOULD', text });

/** A cancelled turn ends, and its end reports it. */
export const ENDS_AS_CANCELLED: Rules = {
  acp: must(ACP, "the agent answers the prompt with stopReason 'cancelled' after all was aborted"),
  mcp: must(MCP_TASKS, 'a task that was cancelled ends in a terminal status'),
  a2a: should(A2A, 'the agent tries to cancel the task and returns its state'),
  'ag-ui': must(AG_UI, "a run that was stopped ends with the outcome 'cancelled', never 'success'"),
};

export const NEVER_AN_ERROR: Rules = {
  acp: must(ACP, 'the agent catches the errors of aborted operations; they are no error response'),
  'ag-ui': must(
    AG_UI,
    "a run that was stopped ends with the outcome 'cancelled'; RUN_ERROR only if it cannot close in order",
  ),
};

export const STOPS_AT_ONCE: Rules = {
  acp: should(ACP, 'the agent stops all model requests and tool calls as soon as possible'),
  mcp: should(MCP, 'the receiver stops processing the cancelled request and frees its resources'),
};

export const UPDATES_BEFORE_THE_END: Rules = {
  acp: must(ACP, 'updates are sent before the response to the prompt'),
  'ag-ui': must(AG_UI, 'nothing follows RUN_FINISHED'),
};

export const CLOSES_WHAT_IT_OPENED: Rules = {
  'ag-ui': must(AG_UI, 'the producer closes every message and call that it opened, then finishes the run'),
};

export const REQUEST_CANCEL: Rules = {
  acp: must(
    ACP_REQUEST,
    'an agent that supports $/cancel_request answers the request: a valid result, or error -32800',
  ),
};

export const CLOSE_CANCELS: Rules = {
  acp: must('ACP v1, session/close', 'closing a session cancels what runs in it, as session/cancel does'),
};

export const PERMISSION_CANCELLED: Rules = {
  acp: must(
    ACP,
    "the client answers pending permission requests with 'cancelled', the agent the prompt with 'cancelled'",
  ),
};

export const UNKNOWN_TASK: Rules = {
  mcp: should(MCP_TASKS, 'an unknown task is refused with -32602'),
  a2a: must(A2A, 'an unknown task is refused with TaskNotFoundError'),
};

export const TERMINAL_STAYS: Rules = {
  mcp: must(MCP_TASKS, 'a terminal status never changes'),
  a2a: must(A2A, 'a task in a terminal state is refused with TaskNotCancelableError and stays as it is'),
};

/** What stands in no specification. */
export const OURS: Rule = { from: 'Whoa', level: 'ours', text: 'no specification says it; users expect it' };
