import type { CallRecord, CallRecords } from './turn/call-records.ts';
import { type CallSite, isSamePosition, isSameWork } from './turn/call-sites.ts';

/** What is recorded about a call in a history: its record, that there is none, or that several calls match. */
export type Match = { readonly record: CallRecord } | 'none' | 'ambiguous';

/**
 * Finds the record of every call in a history. Ids may recur, so a call is identified by its position and its input.
 * Where a history was shortened since, it is identified by its input alone, if that is unambiguous.
 */
export function matchRecords(sites: readonly CallSite[], calls: CallRecords): ReadonlyMap<CallSite, Match> {
  const matches = new Map<CallSite, Match>();
  const claimed = new Set<string>();
  const claim = (site: CallSite, record: CallRecord): void => {
    matches.set(site, { record });
    claimed.add(record.callId);
  };
  for (const site of sites) {
    const record = findApproved(site, calls);
    if (record !== undefined) claim(site, record);
  }
  const records = calls.records();
  for (const [toolCallId, named] of Map.groupBy(sites, (site) => site.toolCallId)) {
    const all = records.filter((one) => one.toolCallId === toolCallId || one.renamedTo === toolCallId);
    for (const site of named) {
      if (matches.has(site)) continue;
      const record = all.findLast((one) => isCandidate(site, one) && isAskedWhere(site, one));
      if (record !== undefined) claim(site, record);
    }
    for (const site of named) {
      if (matches.has(site)) continue;
      const left = all.filter((one) => !claimed.has(one.callId) && isCandidate(site, one));
      const alike = left.filter((one) => couldBe(site, one));
      const rivals = named.filter((other) => !matches.has(other) && isRival(site, other));
      const inOrder = alike.length === rivals.length && alike.every(({ trace }) => trace.position === undefined);
      if (alike.length === 0) matches.set(site, left.length === 0 ? 'none' : 'ambiguous');
      else if (inOrder || (alike.length === 1 && rivals.length === 1))
        for (const [index, rival] of rivals.entries()) claim(rival, alike[index]!);
      else for (const rival of rivals) matches.set(rival, 'ambiguous');
    }
  }
  return matches;
}

/**
 * Returns the record of a call that this approval allowed. The loop's id may have been replaced before it ran. A loop
 * that approves calls by itself does not name the approval to the tool.
 */
export function findApproved(site: CallSite, calls: CallRecords | undefined): CallRecord | undefined {
  if (site.approval === undefined) return undefined;
  const { approvalId, isAutomatic } = site.approval.request;
  return calls?.records().findLast((record) => {
    const { toolCallId, tool, trace } = record;
    if (isAutomatic === true && trace.approvalId === undefined)
      return toolCallId === site.toolCallId && isAskedWhere(site, record);
    return trace.approvalId === approvalId && isSameWork(site, { tool, input: trace.input });
  });
}

/** What one approval allowed is never what another asks for. */
function isCandidate({ approval }: CallSite, { trace }: CallRecord): boolean {
  return approval === undefined || trace.approvalId === undefined;
}

/** Whether this record was made for the call at this position. */
function isAskedWhere(site: CallSite, { tool, trace }: CallRecord): boolean {
  if (trace.position === undefined || trace.occurrence !== site.occurrence) return false;
  return isSameWork(site, { tool, input: trace.input }) && isSamePosition(site.position, trace.position);
}

/** Whether this record may belong to the call, in a history that starts later than the call's did. */
function couldBe(site: CallSite, { tool, trace }: CallRecord): boolean {
  if (!isSameWork(site, { tool, input: trace.input })) return false;
  // A history may contain only the reply; then the user's message before it is not known.
  const isSaidKnown = trace.position !== undefined && site.position.users > 0;
  return !isSaidKnown || trace.position.precedingText === site.position.precedingText;
}

function isRival(site: CallSite, other: CallSite): boolean {
  return isSameWork(site, other) && site.position.precedingText === other.position.precedingText;
}
