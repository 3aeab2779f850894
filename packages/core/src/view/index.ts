// What people see of a call, as data: for terminals, editors and web pages. Nothing here draws.

// The details of a call.
export { type DetailsView, toDetailsView } from './details-view.ts';

// The parts of a view.
export { parseDiff } from './diff.ts';
export { parseAnsi } from './ansi.ts';
