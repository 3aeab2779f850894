// What people see of a call, as data: for terminals, editors and web pages. Nothing here draws.

// The details of a call.
export { type DetailsView, type FoundMatch, type PlanEntry, toDetailsView } from './details-view.ts';

// The parts of a view.
export { type DiffHunk, type DiffLine, parseDiff } from './diff.ts';
export { type AnsiSpan, parseAnsi } from './ansi.ts';
