/** Keeps a claim. A lease never gets shorter: a late renewal must not take back time that was promised. */
export const RENEW: string = /* lua */ `
local task = load(ARGV[5])
if not own(task, tonumber(ARGV[6])) then return { 'lost' } end
local leaseUntil = math.max(now + tonumber(ARGV[7]), task.leaseUntil or 0)
set(task, { leaseUntil = leaseUntil, dueAt = leaseUntil })
redis.call('ZADD', tag .. 'due', leaseUntil, task.id)
return orders(task)
`;

/** Adds to the journal and ticks off commands. */
export const APPEND: string = /* lua */ `
-- A message that the current task has read needs no task of its own.
local function end_steered(task, steered)
  local waiting = load(steered)
  if not waiting or waiting.status ~= 'init' then return end
  end_unstarted(waiting, reason_of('steered', 'answered by ' .. task.id))
  leave_line(waiting)
end

-- The entry as it was given, without the epoch and the time in front of it.
local function entry_bytes(text)
  local _, head = string.find(text, '^%S+ %S+ ')
  return #text - head
end

local epoch, after, bytesMax = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local doneCount, replacesCount = tonumber(ARGV[9]), tonumber(ARGV[10])
local task = load(ARGV[5])
if not own(task, epoch) then return { 'lost' } end
local firstReplaced = 11 + doneCount
local first = firstReplaced + replacesCount
local count = #ARGV - first + 1
local journal = tag .. 'journal:' .. task.id
local alreadyThere = count > 0 and task.position == after + count
if not alreadyThere and task.position ~= after then return { 'gap', tostring(task.position) } end
if not alreadyThere and (count > 0 or replacesCount > 0) then
  local before, gone = task.journalBytes or 0, {}
  local bytes = before
  for i = first, #ARGV do bytes = bytes + #ARGV[i] end
  for i = firstReplaced, first - 1 do
    local place = ARGV[i] .. '-0'
    local found = redis.call('XRANGE', journal, place, place)[1]
    if found then
      bytes = bytes - entry_bytes(found[2][2])
      gone[#gone + 1] = place
    end
  end
  if bytes > math.max(bytesMax, before) then return { 'full', tostring(before) } end
  for _, place in ipairs(gone) do redis.call('XDEL', journal, place) end
  -- An entry's place in the stream is its position in the journal.
  local head = epoch .. ' ' .. now .. ' '
  for i = first, #ARGV do redis.call('XADD', journal, (after + i - first + 1) .. '-0', 'e', head .. ARGV[i]) end
  set(task, { position = after + count, journalBytes = bytes })
  if count > 0 then tell('journal', task) end
end
for i = 11, firstReplaced - 1 do
  local key = tag .. 'commands:' .. task.id
  local command = redis.call('HGET', key, ARGV[i])
  if command then
    redis.call('HDEL', key, ARGV[i])
    local steered = string.match(command, '^([^\\n]*)\\n')
    if steered ~= '' then end_steered(task, steered) end
  end
end
return orders(task)
`;

/** Hands a claim back unfinished: no attempt is lost. */
export const RELEASE: string = /* lua */ `
local epoch = tonumber(ARGV[6])
local task = load(ARGV[5])
if task and task.status == 'init' and task.epoch == epoch then return { 'already' } end
if not own(task, epoch) then return { 'lost' } end
if task.status == 'cancelling' then return { 'sealed' } end
reindex(task, 'init')
unset(task, 'worker', 'leaseUntil')
set(task, { status = 'init', attempts = task.attempts - 1 })
ready(task, now)
tell('wake', task)
return { 'released' }
`;

/**
 * Ends a task. Once a cancel was accepted it is `cancelled`, for the reason of that cancel. The outcome comes in pieces,
 * so that the text of others is never taken apart here.
 */
export const FINISH: string = /* lua */ `
local epoch, asked, reason, complete, rest, anew = tonumber(ARGV[6]), unpack(ARGV, 7, 11)
local task = load(ARGV[5])
if task and task.epoch == epoch and FINAL[task.status] then return { 'already', task.status } end
if not own(task, epoch) then return { 'lost' } end
local status = task.status == 'cancelling' and 'cancelled' or asked
if status == 'cancelled' then
  reason = task.stopReason or reason
  if reason == '' then reason = '{"kind":"user","at":' .. now .. '}' end
  if complete == '' then complete = asked == 'cancelled' and 'false' or 'true' end
end
local outcome = '{"status":"' .. status .. '"'
if reason ~= '' then outcome = outcome .. ',"reason":' .. reason end
if complete ~= '' then outcome = outcome .. ',"complete":' .. complete end
if rest ~= '{}' then outcome = outcome .. ',' .. string.sub(rest, 2) else outcome = outcome .. '}' end
conclude(task, status, outcome)
if task.conversation then
  local key = tag .. 'history:' .. line_name(task.tenant, task.conversation)
  if anew == '1' then redis.call('DEL', key) end
  for i = 12, #ARGV do redis.call('RPUSH', key, ARGV[i]) end
end
local successor = leave_line(task)
tell('status', task)
return { 'finished', status, successor or false }
`;
