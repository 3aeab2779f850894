-- Removes records past their retention. Ended tasks are in one sorted set for each status and tenant, by the time of their
-- end; `ended` has the names of these sets, by the end of their first task or earlier.

-- The keys of one task in addition to the indexes.
local KEYS_OF_TASK = { 'task:', 'outcome:', 'journal:', 'commands:', 'command-nonces:', 'title:', 'context:' }
local BACKGROUND_KEY = '^' .. BACKGROUND .. '(.*)/[^/]*$'

-- Returns the conversation that a background task belongs to.
local function find_background(key)
  return string.match(key, BACKGROUND_KEY)
end

-- isAsked: before its retention ends.
local function purge(id, isAsked)
  local found = redis.call('HMGET', tag .. 'task:' .. id, 'status', 'tenant', 'conversation', 'inputOwner', 'endedAt', 'key',
    'questions')
  if not found[5] or (found[5] + retention > now and not isAsked) then return end
  local keys = { tag .. 'inputs:' .. (found[4] or id) }
  for _, kind in ipairs(KEYS_OF_TASK) do keys[#keys + 1] = tag .. kind .. id end
  if found[7] then keys[#keys + 1], keys[#keys + 2] = tag .. 'questions:' .. id, tag .. 'closed-questions:' .. id end
  redis.call('UNLINK', unpack(keys))
  for _, index in ipairs({ 'status:', 'ended:' }) do redis.call('ZREM', tag .. index .. found[1] .. ':' .. found[2], id) end
  local left = {}
  for i, status in ipairs(STATUSES) do left[i] = tag .. 'status:' .. status .. ':' .. found[2] end
  if redis.call('EXISTS', unpack(left)) == 0 then redis.call('ZREM', tag .. 'tenants', found[2]) end
  if found[3] then redis.call('ZREM', tag .. 'conversation-tasks:' .. pair(found[2], found[3]), id) end
  local background = not found[3] and find_background(found[6] or '')
  if background then redis.call('ZREM', tag .. 'background:' .. pair(found[2], background), id) end
end

-- Returns whether there are more.
local function purge_some(limit)
  while true do
    local first = redis.call('ZRANGE', tag .. 'ended', 0, 0, 'WITHSCORES')
    if not first[1] or first[2] + retention > now then return false end
    if limit <= 0 then return true end
    local key = tag .. 'ended:' .. first[1]
    local ids = redis.call('ZRANGEBYSCORE', key, '-inf', now - retention, 'LIMIT', 0, limit)
    for _, id in ipairs(ids) do purge(id) end
    if #ids > 0 then redis.call('ZREM', key, unpack(ids)) end
    limit = limit - math.max(1, #ids)
    local following = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    if following[1] then
      redis.call('ZADD', tag .. 'ended', following[2], first[1])
    else
      redis.call('ZREM', tag .. 'ended', first[1])
    end
  end
end

local function purge_conversation(name, tenant, conversation)
  redis.call('UNLINK', tag .. 'conversation:' .. name, tag .. 'history:' .. name)
  redis.call('ZREM', tag .. 'conversations:' .. tenant, conversation)
end

-- Returns whether there are more.
local function purge_conversations(limit)
  local idle = redis.call('ZRANGEBYSCORE', tag .. 'idle', '-inf', now - conversationRetention, 'LIMIT', 0, limit)
  for _, name in ipairs(idle) do
    redis.call('ZREM', tag .. 'idle', name)
    local found = redis.call('HMGET', tag .. 'conversation:' .. name, 'changedAt', 'current', 'debouncing')
    local isIdle = found[1] and not found[2] and not found[3] and found[1] + conversationRetention <= now
    if isIdle then purge_conversation(name, split(name)) end
  end
  return #idle == limit
end

-- Removes an ended task. Reads: the task. Writes: its keys and indexes. Returns the answer.
function OPERATIONS.remove(args)
  local id, tenant = unpack(args, 5, 6)
  local task = load(id)
  if not task or task.tenant ~= tenant then return 'not-found' end
  if not task.endedAt then return 'live' end
  purge(id, true)
  return 'removed'
end

-- Removes an idle conversation. Reads: the conversation. Writes: its keys and its index. Returns the answer.
function OPERATIONS.removeConversation(args)
  local tenant, conversation = unpack(args, 5, 6)
  local name = pair(tenant, conversation)
  local found = redis.call('HMGET', tag .. 'conversation:' .. name, 'changedAt', 'current', 'debouncing')
  if not found[1] then return { 'not-found' } end
  if found[2] or found[3] then return { 'live' } end
  purge_conversation(name, tenant, conversation)
  return { 'removed' }
end
