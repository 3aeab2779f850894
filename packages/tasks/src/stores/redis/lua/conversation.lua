-- Conversations: one task is current, the others wait.

local function conversation_named(tenant, conversation)
  local name = pair(tenant, conversation)
  local known = conversations[name]
  if known then return known end
  local key = tag .. 'conversation:' .. name
  local found = redis.call('HMGET', key, 'current', 'debouncing', 'historyBytes', 'changedAt')
  if found[4] and not found[1] and not found[2] and found[4] + conversationRetention <= now then
    redis.call('DEL', key, tag .. 'history:' .. name)
    found = {}
  end
  known = {
    name = name, isNew = not found[3], current = found[1] or nil, debouncing = found[2] or nil, historyBytes = tonumber(found[3] or 0),
    waiting = redis.call('LRANGE', tag .. 'waiting:' .. name, 0, -1),
  }
  conversations[name] = known
  return known
end

local function task_conversation(task)
  if not task.conversation then return nil end
  return conversation_named(task.tenant, task.conversation)
end

local function save_conversation(conversation, waiting)
  local name = conversation.name
  local key = tag .. 'conversation:' .. name
  local flat, gone = { 'changedAt', now, 'historyBytes', conversation.historyBytes }, {}
  for _, field in ipairs({ 'current', 'debouncing' }) do
    if conversation[field] then
      flat[#flat + 1], flat[#flat + 2] = field, conversation[field]
    else
      gone[#gone + 1] = field
    end
  end
  if waiting then
    conversation.waiting = waiting
    redis.call('DEL', tag .. 'waiting:' .. name)
    if #waiting > 0 then redis.call('RPUSH', tag .. 'waiting:' .. name, unpack(waiting)) end
  end
  if conversation.isNew then
    local tenant, own = split(name)
    redis.call('ZADD', tag .. 'conversations:' .. tenant, 0, own)
    conversation.isNew = nil
  end
  -- Only idle conversations are removed.
  if not conversation.current and not conversation.debouncing then redis.call('ZADD', tag .. 'idle', now, name) end
  redis.call('HSET', key, unpack(flat))
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
end

local function without(ids, id)
  local rest = {}
  for _, other in ipairs(ids) do if other ~= id then rest[#rest + 1] = other end end
  return rest
end

-- Removes an ended task from its conversation. Returns the next task, if that changed.
local function leave_conversation(task)
  local conversation = task_conversation(task)
  if not conversation then return nil end
  if conversation.debouncing == task.id then conversation.debouncing = nil end
  local waiting = without(conversation.waiting, task.id)
  if conversation.current ~= task.id then
    save_conversation(conversation, #waiting < #conversation.waiting and waiting or nil)
    return nil
  end
  conversation.current = table.remove(waiting, 1)
  save_conversation(conversation, #conversation.waiting > 0 and waiting or nil)
  local successor = conversation.current and load(conversation.current)
  if not successor then return nil end
  promote(successor)
  return successor.id
end

-- Ends a task whose workers kept crashing.
local function fail_lost(task)
  local message = string.format(LOST_MESSAGE, task.crashes)
  end_task(task, 'failed', '{"status":"failed","error":{"message":"' .. message .. '","code":"WORKERS_LOST"}}')
  leave_conversation(task)
end
