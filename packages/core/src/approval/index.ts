// For code that shows approval questions to users: terminals, editors, web pages.

// Ask a user before a call runs.
export { createApprovals, type ApprovalAnswer, type Ask } from './approvals.ts';
export type { Approve, ApprovalRequest } from '../tool/call/call.ts';

// Show the question, with nothing hidden.
export { type ApprovalQuestion, formatQuestion } from './question.ts';
