import { columnOf } from './task.ts';

/**
 * Returns the task if the claim is still valid: by epoch, session and claim, never by time. Compares numbers: no epoch
 * is 1.5.
 */
export const OWN: string = /* lua */ `
local function own(id, epoch, session, claim)
  local task = load(id)
  local isOwn = task and task.epoch == tonumber(epoch) and task.session == session and task.claim == claim
  if isOwn and (task.status == 'running' or task.status == 'cancelling') then return task end
end
`;

/** What a task's work needs beside its head. */
export const LOAD: string = /* lua */ `
local task = own(unpack(ARGV, 5, 8))
if not task then return { 'lost' } end
return { 'load', load_of(task) }
`;

/** Appends to the journal and marks commands as done. Entries are in a list, at the index of their position. */
export const APPEND: string = /* lua */ `
-- Ends the tasks of messages that the current task has read.
local function end_steered(task, id)
  local waiting = load(id)
  if not waiting or waiting.status ~= 'init' then return end
  end_unstarted(waiting, reason_of('steered', 'answered by ' .. task.id))
  leave_conversation(waiting)
end

-- Returns the original entry, without the epoch and the time in front of it.
local function entry_bytes(text)
  local _, headEnd = string.find(text, '^%S+ %S+ ')
  return #text - headEnd
end

local task = own(unpack(ARGV, 5, 8))
if not task then return { 'lost' } end
local after, maxBytes, progress, activity = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11], ARGV[12]
local doneCount, replacesCount = tonumber(ARGV[13]), tonumber(ARGV[14])
local firstReplaced = 15 + doneCount
local first = firstReplaced + replacesCount
local count = #ARGV - first + 1
local journal = tag .. 'journal:' .. task.id
local isThere = count > 0 and task.position == after + count
if not isThere and task.position ~= after then return { 'gap', tostring(task.position) } end
local sum, gone = task.journalBytes, {}
if not isThere then for i = first, #ARGV do sum = sum + #ARGV[i] end end
for i = firstReplaced, isThere and 0 or first - 1 do
  local index = tonumber(ARGV[i]) - 1
  local found = index >= 0 and redis.call('LINDEX', journal, index)
  if found and found ~= '' then
    sum = sum - entry_bytes(found)
    gone[#gone + 1] = index
  end
end
if sum > math.max(maxBytes, task.journalBytes) then return { 'full', tostring(task.journalBytes) } end
-- A removed entry leaves an empty item, so that later ones keep their index.
for _, index in ipairs(gone) do redis.call('LSET', journal, index, '') end
if not isThere and count > 0 then
  local start, entries = task.epoch .. ' ' .. now .. ' ', {}
  for i = first, #ARGV do
    entries[#entries + 1] = start .. ARGV[i]
    if #entries == 1000 then
      redis.call('RPUSH', journal, unpack(entries))
      entries = {}
    end
  end
  if #entries > 0 then redis.call('RPUSH', journal, unpack(entries)) end
  put(task, 'position', after + count)
end
put(task, 'journalBytes', sum)
if progress == '1' then
  put(task, 'attempts', 0)
  put(task, 'charges', 0)
end
if activity ~= '' and not isThere then put(task, 'activity', activity) end
local steered = {}
for i = 15, firstReplaced - 1 do
  local key = tag .. 'commands:' .. task.id
  local command = redis.call('HGET', key, ARGV[i])
  if command then
    redis.call('HDEL', key, ARGV[i])
    steered[#steered + 1] = string.match(command, '^([^\\n]*)\\n')
  end
end
save(task)
local isNews = not isThere and count > 0
if isNews then tell('journal', task, true) end
for _, id in ipairs(steered) do if id ~= '' then end_steered(task, id) end end
return { 'orders', orders(task), isNews and { task.tenant, task.worker, task.conversation or '' } or false }
`;

/** Hands a claim back unfinished, which costs no attempt. */
export const RELEASE: string = /* lua */ `
local RELEASED = ${columnOf('release')}
local found = load(ARGV[5])
if found and found.released == ARGV[8] then return { 'already' } end
if found and found.lostClaim == ARGV[8] and not found.endedAt then
  -- Takes a crash back: the worker that seemed to be lost is alive, and has stopped its work.
  put(found, 'deaths', found.deaths - 1)
  -- The attempt of its next worker still counts, and progress may have reset its own.
  if found.attempts > (found.stage == 'held' and 1 or 0) then put(found, 'attempts', found.attempts - 1) end
  put(found, 'charges', math.max(0, found.charges - (found.isCharged and 1 or 0)))
  put(found, 'isCharged', nil)
  put(found, 'lostClaim', nil)
  put(found, 'released', ARGV[8])
  if found.stage == 'held' then
    save(found)
  else
    tell('wake', found)
    make_ready(found)
  end
  return { 'already' }
end
local task = own(unpack(ARGV, 5, 8))
if not task then return { 'lost' } end
put(task, 'released', task.claim)
put(task, 'epoch', task.epoch + 1)
put(task, 'attempts', math.max(0, task.attempts - 1))
put(task, 'status', RELEASED[task.status])
put(task, 'session', nil)
put(task, 'claim', nil)
put(task, 'told', nil)
put(task, 'worker', nil)
tell('wake', task)
make_ready(task)
make_room(task)
return { 'released' }
`;

/**
 * Ends a task. Once a cancel was accepted it is \`cancelled\`, for the reason of that cancel. The outcome comes in
 * pieces, so that users' text is never parsed here.
 */
export const FINISH: string = /* lua */ `
local ENDS = { success = ${columnOf('success')}, failed = ${columnOf('failed')}, cancelled = ${columnOf('cancelled')} }
local id, epoch, claim = ARGV[5], tonumber(ARGV[6]), ARGV[8]
local asked, reason, complete, rest, anew, bytes = unpack(ARGV, 9, 14)
local found = load(id)
if found and found.endedAt and found.claim == claim and found.epoch == epoch then return { 'already', found.status } end
local task = own(unpack(ARGV, 5, 8))
if not task then return { 'lost' } end
local status = ENDS[asked][task.status]
if status == 'cancelled' then
  reason = task.stopReason or reason
  if reason == '' then reason = '{"kind":"user","at":' .. now .. '}' end
  if complete == '' then complete = asked == 'cancelled' and 'false' or 'true' end
end
local outcome = '{"status":"' .. status .. '"'
if reason ~= '' then outcome = outcome .. ',"reason":' .. reason end
if complete ~= '' then outcome = outcome .. ',"complete":' .. complete end
if rest ~= '{}' then outcome = outcome .. ',' .. string.sub(rest, 2) else outcome = outcome .. '}' end
if task.conversation then
  local conversation = conversation_of(task)
  local key = tag .. 'history:' .. conversation.name
  if anew == '1' then
    redis.call('DEL', key)
    conversation.historyBytes = 0
  end
  for i = 15, #ARGV, 1000 do redis.call('RPUSH', key, unpack(ARGV, i, math.min(i + 999, #ARGV))) end
  conversation.historyBytes = conversation.historyBytes + tonumber(bytes)
end
end_task(task, status, outcome)
local successor = leave_conversation(task)
return { 'finished', status, successor or false, { task.tenant, task.worker, task.conversation or '' } }
`;
