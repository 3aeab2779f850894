// For code that shows approval questions to users: terminals, editors, web pages.

// Ask a user before a call runs.
export { createApprovals, type ApprovalAnswer, type Ask, type DecideApproval as Judge } from './approvals.ts';
export type { Approve, ApprovalRequest } from '../tool/call/call.ts';

// Show the question, with nothing hidden.
export { type ApprovalQuestion, formatQuestion, formatCallTitle, describeLocation } from './question.ts';
export { toVisibleLine, toInertText } from './visible.ts';
