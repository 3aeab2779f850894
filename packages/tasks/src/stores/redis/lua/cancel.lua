-- Stopping tasks, and commands to their workers.

-- A reason without a time gets the store's time.
local function asked_by(level, abortMs, killMs, undo, reason, isDated)
  if isDated == '0' then reason = string.sub(reason, 1, -2) .. ',"at":' .. now .. '}' end
  return { level = level, abortMs = tonumber(abortMs), killMs = tonumber(killMs), undo = undo == '1', reason = reason }
end

-- Withdraws a message that the current task has not read yet.
local function withdraw_steer(task)
  local key = tag .. 'commands:' .. task.steered
  local commands = redis.call('HGETALL', key)
  for i = 1, #commands, 2 do
    if string.match(commands[i + 1], '^([^\n]*)\n') == task.id then
      redis.call('HDEL', key, commands[i])
      send_order(load(task.steered), 'command')
    end
  end
end

-- Asks a task to stop. A task that never started ends immediately.
local function cancel_task(task, asked)
  if task.endedAt then return { 'too-late', task.status } end
  if not has_started(task) then
    if task.steered then withdraw_steer(task) end
    end_unstarted(task, asked.reason)
    leave_conversation(task)
    return { 'accepted', 'cancelled', 'drain', asked.reason, tostring(now) }
  end
  local answer = order_stop(task, asked)
  return { answer, 'cancelling', level_now(task), task.stopReason, tostring(task.killAt) }
end

-- A shortcut of `cancel_task`: the first cancel of a task that a worker holds.
local function cancel_held(id, tenant, asked)
  local key = tag .. 'task:' .. id
  local owner, status, stage, stopLevel, worker, conversation, epoch, claim, orderNumber, createdAt, session,
    hasPendingOrders, questions = unpack(
    redis.call('HMGET', key, 'tenant', 'status', 'stage', 'stopLevel', 'worker', 'conversation', 'epoch', 'claim', 'orderNumber',
      'createdAt', 'session', 'hasPendingOrders', 'questions'))
  if owner ~= tenant or status ~= 'running' or stage ~= 'held' or stopLevel or questions then return nil end
  local task = {
    id = id, tenant = tenant, status = STATUS_AFTER.cancel.running, worker = worker or nil, conversation = conversation or nil,
    epoch = epoch or 0, claim = claim or nil, orderNumber = (orderNumber or 0) + 1, stopLevel = asked.level,
    abortAt = now + asked.abortMs, killAt = now + asked.killMs, undo = asked.undo and '1' or '0', stopReason = asked.reason,
  }
  redis.call('HSET', key, 'status', task.status, 'stopLevel', task.stopLevel, 'abortAt', task.abortAt, 'killAt', task.killAt,
    'undo', task.undo, 'stopReason', task.stopReason, 'orderNumber', task.orderNumber, 'hasPendingOrders', '1')
  redis.call('ZREM', tag .. 'status:running:' .. tenant, id)
  redis.call('ZADD', tag .. 'status:' .. task.status .. ':' .. tenant, createdAt, id)
  if not hasPendingOrders then redis.call('ZADD', tag .. 'pending-orders:' .. session, now, id) end
  notify('cancel', task)
  return { 'accepted', task.status, level_now(task), task.stopReason, tostring(task.killAt) }
end

-- Asks one task to stop.
-- Reads: the task; its conversation if it never started. Writes: the task, its indexes, the orders of its worker.
-- Returns the answer, the status, the level, the reason and when the task is killed.
function OPERATIONS.cancel(args)
  local id, tenant, level, abortMs, killMs, undo, reason, isDated = unpack(args, 5, 12)
  local asked = asked_by(level, abortMs, killMs, undo, reason, isDated)
  local receipt = HAS_SHORTCUTS and cancel_held(id, tenant, asked)
  if receipt then return receipt end
  local task = load(id)
  if not task or task.tenant ~= tenant then return { 'not-found' } end
  return cancel_task(task, asked)
end

-- Asks the current task of a conversation to stop, and ends all waiting tasks.
-- Reads and writes: the conversation, all its live tasks. Returns the receipt of the current task.
function OPERATIONS.cancelConversation(args)
  local tenant, conversation, level, abortMs, killMs, undo, reason, isDated = unpack(args, 5, 12)
  local found = conversation_named(tenant, conversation)
  local asked = asked_by(level, abortMs, killMs, undo, reason, isDated)
  local ids, receipt = {}, { 'not-found' }
  if found.debouncing then ids[1] = found.debouncing end
  for _, id in ipairs(found.waiting) do ids[#ids + 1] = id end
  -- The current task last: while it is live, no other task can start.
  if found.current then ids[#ids + 1] = found.current end
  for _, id in ipairs(ids) do
    local task = load(id)
    if task then receipt = cancel_task(task, asked) end
  end
  return receipt
end

-- Sends a command to the worker of a task. A message withdraws its open questions.
-- Reads: the task, the nonces of its commands. Writes: the command, its nonce, the order. Returns the answer and the number.
function OPERATIONS.send(args)
  local id, tenant, nonce, command, kind = unpack(args, 5, 9)
  local task = load(id)
  if not task or task.tenant ~= tenant then return { 'not-found' } end
  local key, nonces = tag .. 'commands:' .. id, tag .. 'command-nonces:' .. id
  -- Check this first: the command may have been carried out since, and the task may have ended.
  local known = redis.call('ZSCORE', nonces, nonce)
  if known then return { 'accepted', known } end
  if task.status ~= 'init' and task.status ~= 'running' then return { 'too-late', task.status } end
  if redis.call('HLEN', key) >= LIMITS.maxCommands then return { 'full' } end
  local number = task.commandsSent + 1
  redis.call('HSET', key, number, '\n' .. command)
  redis.call('ZADD', nonces, number, nonce)
  redis.call('ZREMRANGEBYSCORE', nonces, '-inf', number - LIMITS.maxNonces)
  put(task, 'commandsSent', number)
  if kind == 'steer' then close_open(task, 'withdrawn') end
  send_order(task, 'command')
  return { 'accepted', tostring(number) }
end
