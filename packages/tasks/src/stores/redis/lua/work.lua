-- What the holder of a claim does.

-- Returns the task if the claim is still valid: by epoch, session and claim, never by time. Compares numbers: no epoch
-- is 1.5.
local function own(id, epoch, session, claim)
  local task = load(id)
  local isOwn = task and task.epoch == tonumber(epoch) and task.session == session and task.claim == claim
  if isOwn and (task.status == 'running' or task.status == 'cancelling') then return task end
end

-- Reads: the task, its inputs, its history, its context. Returns what its work needs in addition to its head.
function OPERATIONS.load(args)
  local id, epoch, session, claim = unpack(args, 5, 8)
  local task = own(id, epoch, session, claim)
  if not task then return { 'lost' } end
  return { 'load', task_load(task) }
end

-- Ends the tasks of messages that the current task has read.
local function end_steered(task, id)
  local waiting = load(id)
  if not waiting or waiting.status ~= 'init' then return end
  end_unstarted(waiting, to_reason('steered', 'answered by ' .. task.id))
  leave_conversation(waiting)
end

-- Returns the original entry, without the epoch and the time in front of it.
local function entry_bytes(text)
  local _, headEnd = string.find(text, '^%S+ %S+ ')
  return #text - headEnd
end

-- Appends to the journal, marks commands as done, asks and closes questions. Entries are in a list, at the index of their position.
-- Reads: the task, entries that are replaced, commands. Writes: the journal, the task, the commands, tasks of messages
-- that were read. Returns the orders, and whom to notify if the journal grew.
function OPERATIONS.append(args)
  local id, epoch, session, claim, after, maxBytes, progress, activity, doneCount, replacesCount, questionsCount = unpack(args, 5, 15)
  local task = own(id, epoch, session, claim)
  if not task then return { 'lost' } end
  after, maxBytes = tonumber(after), tonumber(maxBytes)
  local firstReplaced = 16 + tonumber(doneCount)
  local firstQuestion = firstReplaced + tonumber(replacesCount)
  local first = firstQuestion + tonumber(questionsCount)
  local count = #args - first + 1
  local journal = tag .. 'journal:' .. id
  local isThere = count > 0 and task.position == after + count
  if not isThere and task.position ~= after then return { 'gap', tostring(task.position) } end
  local sum, gone = task.journalBytes, {}
  if not isThere then for i = first, #args do sum = sum + #args[i] end end
  for i = firstReplaced, isThere and 0 or firstQuestion - 1 do
    local index = tonumber(args[i]) - 1
    local found = index >= 0 and redis.call('LINDEX', journal, index)
    if found and found ~= '' then
      sum = sum - entry_bytes(found)
      gone[#gone + 1] = index
    end
  end
  if sum > math.max(maxBytes, task.journalBytes) then return { 'full', tostring(task.journalBytes) } end
  local refused, asked
  if not isThere then refused, asked = apply_questions(task, args, firstQuestion, first - 1) end
  if refused then return { 'refused', refused } end
  -- A removed entry leaves an empty item, so that later ones keep their index.
  for _, index in ipairs(gone) do redis.call('LSET', journal, index, '') end
  if not isThere and count > 0 then
    local start, entries = task.epoch .. ' ' .. now .. ' ', {}
    for i = first, #args do
      entries[#entries + 1] = start .. args[i]
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
  for i = 16, firstReplaced - 1 do
    local key = tag .. 'commands:' .. id
    local command = redis.call('HGET', key, args[i])
    if command then
      redis.call('HDEL', key, args[i])
      steered[#steered + 1] = string.match(command, '^([^\n]*)\n')
    end
  end
  save(task)
  local isNews = not isThere and count > 0
  if isNews then notify((asked or 0) > 0 and 'status' or 'journal', task, true) end
  for _, one in ipairs(steered) do if one ~= '' then end_steered(task, one) end end
  return { 'orders', orders(task), isNews and { task.tenant, task.worker, task.conversation or '' } or false }
end

-- Takes a crash back: the worker that seemed to be lost is alive, and has stopped its work.
local function take_crash_back(task, claim)
  put(task, 'crashes', task.crashes - 1)
  -- The attempt of its next worker still counts, and progress may have reset its own.
  if task.attempts > (task.stage == 'held' and 1 or 0) then put(task, 'attempts', task.attempts - 1) end
  put(task, 'charges', math.max(0, task.charges - (task.isCharged and 1 or 0)))
  put(task, 'isCharged', nil)
  put(task, 'lostClaim', nil)
  put(task, 'released', claim)
  if task.stage == 'held' or task.stage == 'parked' then return save(task) end
  notify('preferred', task)
  make_ready(task)
end

-- Hands a claim back unfinished, which costs no attempt. Only a task that will run again is delayed: a stop never waits.
-- Reads: the task. Writes: the task, its indexes; notifies workers. Returns the answer.
function OPERATIONS.release(args)
  local id, epoch, session, claim, delayMs = unpack(args, 5, 9)
  local found = load(id)
  if found and found.released == claim then return { 'unchanged' } end
  if found and found.lostClaim == claim and not found.endedAt then
    take_crash_back(found, claim)
    return { 'unchanged' }
  end
  local task = own(id, epoch, session, claim)
  if not task then return { 'lost' } end
  put_release(task, claim)
  notify('preferred', task)
  if tonumber(delayMs) > 0 and task.status == 'init' then delay_until(task, now + tonumber(delayMs)) else make_ready(task) end
  free_slot(task)
  return { 'released' }
end

-- Parks a task if its worker has acted on everything, and only answers can make it continue.
-- Reads: the task, its commands. Writes: the task, its indexes. Returns the answer, and the orders if it is busy.
function OPERATIONS.park(args)
  local id, epoch, session, claim, position, orderNumber = unpack(args, 5, 10)
  local found = load(id)
  if found and found.released == claim then return { 'unchanged' } end
  local task = own(id, epoch, session, claim)
  if not task then return { 'lost' } end
  local open, pending = question_counts(task)
  local isRead = task.position == tonumber(position) and task.orderNumber == tonumber(orderNumber) and #read_commands(task) == 0
  if task.status ~= 'running' or not isRead or open == 0 or pending > 0 then return { 'busy', orders(task) } end
  put_park(task, claim)
  save(task)
  free_slot(task)
  notify('status', task)
  return { 'parked' }
end

-- A shortcut of `finish`: the end of a task that ran alone and got no orders.
local function finish_alone(id, epoch, session, claim, asked, rest)
  local key = tag .. 'task:' .. id
  local status_, ownEpoch, ownSession, ownClaim, tenant, agent, worker, createdAt, conversation, commandsSent,
    hasPendingOrders, questions = unpack(
    redis.call('HMGET', key, 'status', 'epoch', 'session', 'claim', 'tenant', 'agent', 'worker', 'createdAt', 'conversation',
      'commandsSent', 'hasPendingOrders', 'questions'))
  local isOwn = status_ == 'running' and ownEpoch == epoch and ownSession == session and ownClaim == claim
  if not isOwn or conversation or commandsSent or hasPendingOrders or questions then return nil end
  local status = STATUS_AFTER[asked].running
  local group = status .. ':' .. tenant
  local outcome = '{"status":"' .. status .. '"' .. (rest == '{}' and '}' or ',' .. string.sub(rest, 2))
  if #outcome <= 64 then
    redis.call('HSET', key, 'status', status, 'endedAt', now, 'outcome', outcome)
  else
    redis.call('HSET', key, 'status', status, 'endedAt', now)
    redis.call('SET', tag .. 'outcome:' .. id, outcome)
  end
  redis.call('HDEL', tag .. 'held:' .. session, id)
  redis.call('HINCRBY', tag .. 'running', agent, -1)
  redis.call('ZREM', tag .. 'status:running:' .. tenant, id)
  redis.call('ZADD', tag .. 'status:' .. group, createdAt, id)
  redis.call('ZADD', tag .. 'ended:' .. group, now, id)
  redis.call('ZADD', tag .. 'ended', 'LT', now, group)
  notify('status', { id = id, tenant = tenant, worker = worker }, true)
  return { 'finished', status, false, { tenant, worker, '' } }
end

-- Ends a task. Once a cancel was accepted it is `cancelled`, for the reason of that cancel. The outcome comes in
-- pieces, so that users' text is never parsed here.
-- Reads: the task, its conversation and the next task in it. Writes: the task, its indexes, the history, the next task.
-- Returns the answer, the status, the next task, and whom to notify.
function OPERATIONS.finish(args)
  local id, epoch, session, claim, asked, reason, complete, rest, replacesHistory, bytes = unpack(args, 5, 14)
  local isPlain = HAS_SHORTCUTS and asked ~= 'cancelled' and reason == '' and complete == '' and maxTenant == 0 and maxAgent == 0
  local receipt = isPlain and finish_alone(id, epoch, session, claim, asked, rest)
  if receipt then return receipt end
  local found = load(id)
  if found and found.endedAt and found.claim == claim and found.epoch == tonumber(epoch) then
    return { 'unchanged', found.status }
  end
  local task = own(id, epoch, session, claim)
  if not task then return { 'lost' } end
  local status = STATUS_AFTER[asked][task.status]
  if status == 'cancelled' then
    reason = task.stopReason or reason
    if reason == '' then reason = '{"kind":"user","at":' .. now .. '}' end
    if complete == '' then complete = asked == 'cancelled' and 'false' or 'true' end
  end
  local outcome = '{"status":"' .. status .. '"'
  if reason ~= '' then outcome = outcome .. ',"reason":' .. reason end
  if complete ~= '' then outcome = outcome .. ',"isComplete":' .. complete end
  if rest ~= '{}' then outcome = outcome .. ',' .. string.sub(rest, 2) else outcome = outcome .. '}' end
  if task.conversation then
    local conversation = task_conversation(task)
    local key = tag .. 'history:' .. conversation.name
    if replacesHistory == '1' then
      redis.call('DEL', key)
      conversation.historyBytes = 0
    end
    for i = 15, #args, 1000 do redis.call('RPUSH', key, unpack(args, i, math.min(i + 999, #args))) end
    conversation.historyBytes = conversation.historyBytes + tonumber(bytes)
  end
  end_task(task, status, outcome)
  local successor = leave_conversation(task)
  return { 'finished', status, successor or false, { task.tenant, task.worker, task.conversation or '' } }
end
