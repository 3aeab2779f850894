import { LIMITS } from '../../../rules/rules.ts';

/** Claims one task by its id. */
export const CLAIM: string = /* lua */ `
local id, sessionId, worker, leaseMs, claim = unpack(ARGV, 5, 9)
leaseMs, bytesLeft = tonumber(leaseMs), tonumber(ARGV[10])
local session = session_named(sessionId)
if session and session.isOver then return { 'gone' } end
-- A claim says nothing about other sessions, so it must not use up the request to sweep them.
visit(leaseMs, false)
local task = load(id)
if not task then return { 'unknown' } end
if task.stage == 'later' and task.policy and task.stageAt <= now then admit_gathered(task) end
if task.endedAt then return { 'too-late', task.status } end
if task.stage == 'held' then
  if task.session == sessionId and task.claim == claim then return { 'claimed', taken(task) } end
  return { 'held', redis.call('ZSCORE', tag .. 'sessions', task.session) or tostring(now) }
end
if task.stage == 'queue' then return { 'waiting' } end
if task.status ~= 'cancelling' and (is_paused('agent', task.agent) or is_paused('tenant', task.tenant)) then return { 'waiting' } end
if task.stage == 'later' then
  -- A task that only waits for its preferred worker can be claimed; the others have to wait.
  local until_ = (task.worker and task.deaths == 0 and not task.policy) and (task.notBefore or 0) or task.stageAt
  if until_ > now then return { 'waiting', tostring(until_) } end
end
local isSuspect = is_suspect(task)
if isSuspect and holds_suspect(session) then return { 'waiting', tostring(now + ${LIMITS.suspectWaitMs}) } end
local wasEmpty = redis.call('HLEN', tag .. 'held:' .. sessionId) == 0
if not hold_or_fail(task, sessionId, claim, worker) then return { 'too-late', task.status } end
note_held(sessionId, worker, leaseMs, wasEmpty, isSuspect and task.id or nil)
return { 'claimed', taken(task) }
`;
