-- What is read of tasks and conversations.

-- Reads: one task of a tenant. Returns it, or false.
function OPERATIONS.get(args)
  local id, tenant = unpack(args, 5, 6)
  local task = load(id)
  if not task or task.tenant ~= tenant then return false end
  return record(task)
end

-- Returns the tenant of a task.
function OPERATIONS.readTenant(args)
  local id = args[5]
  return redis.call('HGET', tag .. 'task:' .. id, 'tenant')
end

-- How many ids of a conversation are read for one page, however few of them match.
local MAX_LOOKED_AT = 1000

-- Compares bytes, as sorted sets do: '<' follows the locale of the server.
local function is_before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = string.byte(a, i), string.byte(b, i)
    if one ~= other then return one < other end
  end
  return #a < #b
end

-- Returns a page of a tenant's tasks in this shard, newest first: those of one status, of or behind a conversation, or all;
-- and where to continue if it is not full. Never a scan.
function OPERATIONS.list(args)
  local tenant, status, conversation, limit, at, last, background = unpack(args, 5, 11)
  local index = conversation ~= '' and 'conversation-tasks:' .. pair(tenant, conversation)
    or background ~= '' and 'background:' .. pair(tenant, background)
  limit = tonumber(limit)

  -- Returns ids with their creation times, newest first, after the end of the previous page.
  local function read_some(key, count)
    local found, offset = {}, 0
    if last ~= '' then offset = redis.call('ZCOUNT', key, '(' .. at, '+inf') end
    while #found < count do
      local flat = redis.call('ZREVRANGE', key, offset, offset + count - 1, 'WITHSCORES')
      if #flat == 0 then break end
      offset = offset + #flat / 2
      for i = 1, #flat, 2 do
        local createdAt = tonumber(flat[i + 1])
        local isAfter = last == '' or createdAt < tonumber(at) or is_before(flat[i], last)
        if isAfter and #found < count then found[#found + 1] = { flat[i], createdAt } end
      end
    end
    return found
  end

  local found, bound = {}, limit
  if index then
    bound = math.max(limit, MAX_LOOKED_AT)
    found = read_some(tag .. index, bound)
  elseif status ~= '' then
    found = read_some(tag .. 'status:' .. status .. ':' .. tenant, bound)
  else
    for _, each in ipairs(STATUSES) do
      for _, one in ipairs(read_some(tag .. 'status:' .. each .. ':' .. tenant, bound)) do found[#found + 1] = one end
    end
    table.sort(found, function(a, b)
      if a[2] ~= b[2] then return a[2] > b[2] end
      return is_before(b[1], a[1])
    end)
  end
  local heads, lookedAt = {}, nil
  for i = 1, math.min(#found, bound) do
    if #heads >= limit then break end
    lookedAt = found[i]
    local isWanted = not index or status == ''
      or redis.call('HGET', tag .. 'task:' .. lookedAt[1], 'status') == status
    local task = isWanted and load(lookedAt[1])
    if task then heads[#heads + 1] = head(task) end
  end
  -- There may be more after the last one that was read.
  local isStopped = #heads < limit and #found >= bound
  return { heads, isStopped and { tostring(lookedAt[2]), lookedAt[1] } or false }
end

-- Removed entries have left empty items.
local function read_journal(id, tenant, after, limit)
  local task = load(id)
  if not task or task.tenant ~= tenant then return {} end
  local entries, key = {}, tag .. 'journal:' .. task.id
  while #entries < 2 * limit and after < task.position do
    local some = redis.call('LRANGE', key, after, after + limit - 1)
    if #some == 0 then break end
    for i, entry in ipairs(some) do
      if entry ~= '' and #entries < 2 * limit then
        entries[#entries + 1], entries[#entries + 2] = tostring(after + i), entry
      end
    end
    after = after + #some
  end
  return entries
end

-- Reads: part of a journal. Returns positions and entries.
function OPERATIONS.read(args)
  local id, tenant, after, limit = unpack(args, 5, 8)
  return read_journal(id, tenant, tonumber(after), tonumber(limit))
end

-- Like `read`, and records that a client is reading. Writes only when the last record would soon expire.
function OPERATIONS.readAlong(args)
  local id, tenant, after, limit, watchTtlMs = unpack(args, 5, 9)
  watchTtlMs = tonumber(watchTtlMs)
  local watched = load(id)
  if watched and watched.tenant == tenant and not watched.endedAt then
    local known = watched.watchedUntil or 0
    if known < now + watchTtlMs / 2 then
      put(watched, 'watchedUntil', now + watchTtlMs)
      -- A reader does not wake a task that waits for an answer.
      if known > now or watched.stage == 'parked' then save(watched) else send_order(watched, 'command') end
    end
  end
  return read_journal(id, tenant, tonumber(after), tonumber(limit))
end

-- Reads: a conversation. Returns its change, its current and debouncing tasks, its history and its waiting tasks, or false.
function OPERATIONS.conversation(args)
  local tenant, conversation = unpack(args, 5, 6)
  local name = pair(tenant, conversation)
  local found = redis.call('HMGET', tag .. 'conversation:' .. name, 'changedAt', 'current', 'debouncing')
  if not found[1] or not (found[2] or found[3] or found[1] + conversationRetention > now) then return false end
  local history = redis.call('LRANGE', tag .. 'history:' .. name, 0, -1)
  return { found[1], found[2], found[3], history, redis.call('LRANGE', tag .. 'waiting:' .. name, 0, -1) }
end
