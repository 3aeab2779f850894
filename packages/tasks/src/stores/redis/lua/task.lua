-- A task is a hash of small fields. Large fields have separate keys, so that the hash stays compact.

-- What a field is if it is not stored: these are 0, and all others nothing.
local NONE = {
  epoch = 0, attempts = 0, charges = 0, crashes = 0, commandsSent = 0, orderNumber = 0, position = 0, journalBytes = 0, priority = 0,
}
local TASK = { __index = NONE }
local NUMBERS = {
  stageAt = true, createdAt = true, startedAt = true, endedAt = true, abortAt = true, killAt = true, watchedUntil = true,
  notBefore = true, deadline = true,
}
-- What an ended task keeps in its hash, and no one reads: that saves a command.
local LEFT = { stage = true, stageAt = true, session = true }

-- Returns when something about a task expires: an open question, or, while it is parked, the task itself.
local function to_expiry(task)
  local at = tonumber(string.match(task.questions, '%S+$'))
  if task.stage == 'parked' and task.deadline and task.deadline < (at or math.huge) then return task.deadline end
  return at
end

local function new_task(id)
  -- What it will have is named, so that the table need not grow.
  local task = { id = id, tenant = nil, agent = nil, status = nil, createdAt = nil, stage = nil, stageAt = nil, input = nil, epoch = nil }
  before[task], loaded[id] = { exists = false, status = nil, stage = nil, stageAt = nil, session = nil, readyQueue = nil }, task
  return setmetatable(task, TASK)
end

local function is_suspect(task)
  return task.status ~= 'cancelling' and task.attempts >= LIMITS.suspectAttempts
end

-- Returns the name of the ready queue in which a task waits when it is ready. Any worker can settle a task.
local function to_ready_queue(task)
  if task.status == 'cancelling' then return task.undo == '1' and UNDO .. task.agent or SETTLE end
  return is_suspect(task) and SUSPECTS .. task.agent or task.agent
end

local function to_agent(readyQueue)
  local start = string.sub(readyQueue, 1, #SUSPECTS)
  return (start == SUSPECTS or start == UNDO) and string.sub(readyQueue, #SUSPECTS + 1) or readyQueue
end

-- Returns the task; if there is none, whether that is because it is past its retention.
local function load(id)
  local known = loaded[id]
  if known then return known end
  local flat = redis.call('HGETALL', tag .. 'task:' .. id)
  if #flat == 0 then return nil end
  local task = new_task(id)
  for i = 1, #flat, 2 do
    local name = flat[i]
    if NUMBERS[name] or NONE[name] then task[name] = tonumber(flat[i + 1]) else task[name] = flat[i + 1] end
  end
  -- Hides a task past its retention, whether or not it has been removed yet.
  if task.endedAt and task.endedAt + retention <= now then
    loaded[id] = nil
    return nil, true
  end
  if task.endedAt then task.stage, task.stageAt, task.session = nil, nil, nil end
  before[task] = {
    exists = true, status = task.status, stage = task.stage, stageAt = task.stageAt, session = task.session,
    hasPendingOrders = task.hasPendingOrders, readyQueue = task.stage == 'ready' and to_ready_queue(task) or nil,
    expiry = task.questions and to_expiry(task),
  }
  return task
end

-- Changes a field. A name may be noted twice: it is read when the task is saved.
local function put(task, name, value)
  if task[name] == value then return end
  task[name] = value
  local names = changed[task]
  if names then names[#names + 1] = name else changed[task] = { name } end
end

local function ready_key(agent, tenant)
  return tag .. 'ready:' .. pair(agent, tenant)
end

-- Call it when the last task has left a ready queue.
local function close_queue(readyQueue, tenant)
  local agent = to_agent(readyQueue)
  if redis.call('EXISTS', ready_key(agent, tenant), ready_key(SUSPECTS .. agent, tenant), ready_key(UNDO .. agent, tenant)) == 0 then
    redis.call('ZREM', tag .. 'queues', pair(agent, tenant))
  end
end

-- Higher priorities first, then longest ready.
local function to_rank(task)
  return (100 - task.priority) * 1e13 + task.stageAt
end

local function save_fields(task, exists)
  local names = changed[task]
  if not names then return end
  local flat, size, gone = {}, 0, {}
  for _, name in ipairs(names) do
    local value = task[name]
    if value == NONE[name] then
      if not (task.endedAt and LEFT[name]) then gone[#gone + 1] = name end
    else
      flat[size + 1], flat[size + 2] = name, value
      size = size + 2
    end
  end
  changed[task] = nil
  if size > 0 then redis.call('HSET', tag .. 'task:' .. task.id, unpack(flat)) end
  if exists and #gone > 0 then redis.call('HDEL', tag .. 'task:' .. task.id, unpack(gone)) end
end

local function save_held(task, old)
  local id, session = task.id, task.session
  local isHeld = task.stage == 'held'
  if old.stage == 'held' and (not isHeld or old.session ~= session) then
    redis.call('HDEL', tag .. 'held:' .. old.session, id)
    if old.hasPendingOrders then redis.call('ZREM', tag .. 'pending-orders:' .. old.session, id) end
    redis.call('HINCRBY', tag .. 'running', task.agent, -1)
    old.stage, old.hasPendingOrders = nil, nil
  end
  if not isHeld then return end
  if old.stage ~= 'held' then
    if batch then
      batch.held[#batch.held + 1], batch.held[#batch.held + 2] = id, task.epoch
      batch.agents[task.agent] = (batch.agents[task.agent] or 0) + 1
    else
      redis.call('HSET', tag .. 'held:' .. session, id, task.epoch)
      redis.call('HINCRBY', tag .. 'running', task.agent, 1)
    end
  end
  if task.hasPendingOrders and not old.hasPendingOrders then redis.call('ZADD', tag .. 'pending-orders:' .. session, now, id) end
  if old.hasPendingOrders and not task.hasPendingOrders then redis.call('ZREM', tag .. 'pending-orders:' .. session, id) end
end

-- Updates the indexes of a task that has asked.
local function save_asking(task, old)
  local expiry, parked = to_expiry(task), tag .. 'parked:' .. task.tenant
  if expiry ~= old.expiry then
    if expiry then redis.call('ZADD', tag .. 'expiries', expiry, task.id) else redis.call('ZREM', tag .. 'expiries', task.id) end
    old.expiry = expiry
  end
  if task.stage == 'parked' and old.stage ~= 'parked' then redis.call('SADD', parked, task.id) end
  if old.stage == 'parked' and task.stage ~= 'parked' then redis.call('SREM', parked, task.id) end
end

-- Writes the changes, and updates the indexes from the task's fields.
local function save(task)
  local old, id, stage = before[task], task.id, task.stage
  save_fields(task, old.exists)
  if old.status ~= task.status then
    if old.status then
      redis.call('ZREM', tag .. 'status:' .. old.status .. ':' .. task.tenant, id)
    else
      redis.call('ZADD', tag .. 'tenants', 0, task.tenant)
    end
    redis.call('ZADD', tag .. 'status:' .. task.status .. ':' .. task.tenant, task.createdAt, id)
    if task.deadline and task.status == 'init' then redis.call('ZADD', tag .. 'deadlines', task.deadline, id) end
    if task.deadline and old.status == 'init' then redis.call('ZREM', tag .. 'deadlines', id) end
  end
  local readyQueue = stage == 'ready' and to_ready_queue(task) or nil
  local isMoved = old.stageAt ~= task.stageAt
  if old.readyQueue and old.readyQueue ~= readyQueue and not old.popped then
    redis.call('ZREM', ready_key(old.readyQueue, task.tenant), id)
    close_queue(old.readyQueue, task.tenant)
  end
  if readyQueue and (old.readyQueue ~= readyQueue or isMoved) then
    redis.call('ZADD', ready_key(readyQueue, task.tenant), to_rank(task), id)
  end
  if old.stage == 'delayed' and stage ~= 'delayed' then redis.call('ZREM', tag .. 'delayed', id) end
  if stage == 'delayed' and (old.stage ~= 'delayed' or isMoved) then redis.call('ZADD', tag .. 'delayed', task.stageAt, id) end
  if task.questions then save_asking(task, old) end
  if stage == 'held' or old.stage == 'held' then save_held(task, old) end
  old.exists, old.status, old.stage, old.stageAt = true, task.status, stage, task.stageAt
  old.session, old.hasPendingOrders, old.readyQueue, old.popped = task.session, task.hasPendingOrders, readyQueue, nil
end

local function input_owner(task)
  if task.inputOwner == '' then return {} end
  if task.input then return { task.input } end
  return redis.call('LRANGE', tag .. 'inputs:' .. (task.inputOwner or task.id), 0, -1)
end

-- Equal contexts are equal texts.
local function read_context(task)
  return task.context and redis.call('GET', tag .. 'context:' .. task.id) or ''
end

local function read_commands(task)
  if task.commandsSent == 0 or task.endedAt then return {} end
  return redis.call('HGETALL', tag .. 'commands:' .. task.id)
end

-- Returns everything about a task except its inputs, as plain replies.
local function head(task)
  local flat, size = {}, 0
  for name, value in pairs(task) do
    if name == 'title' and value == '' then value = redis.call('GET', tag .. 'title:' .. task.id) or '' end
    flat[size + 1], flat[size + 2] = name, tostring(value)
    size = size + 2
  end
  local outcome = false
  if task.endedAt and not task.outcome then outcome = redis.call('GET', tag .. 'outcome:' .. task.id) end
  return { flat, outcome, read_commands(task) }
end

local function record(task)
  local reply = head(task)
  reply[4] = input_owner(task)
  reply[5] = read_context(task)
  if task.questions then
    reply[6] = redis.call('HGETALL', tag .. 'questions:' .. task.id)
    for _, part in ipairs(redis.call('HGETALL', tag .. 'closed-questions:' .. task.id)) do reply[6][#reply[6] + 1] = part end
  end
  return reply
end
