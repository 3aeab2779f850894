// For those who show questions to people: terminals, editors, web pages.

// Ask a person before a call runs.
export { createApprovals, type ApprovalAnswer, type Ask, type Judge } from './approvals.ts';
export type { Approve, ApprovalRequest } from '../tool/call.ts';

// Show the question, with nothing hidden.
export { type ApprovalQuestion, questionLines, callTitle, describeLocation } from './question.ts';
export { visibleLine, inertText } from './visible.ts';
