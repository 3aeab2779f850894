-- What operators ask and order.

-- Counts a tenant's tasks by status, in the order of the table, without those past their retention.
function OPERATIONS.counts(args)
  local tenant = args[5]
  local counts = {}
  for i, status in ipairs(STATUSES) do
    local group = status .. ':' .. tenant
    counts[i] = IS_FINAL[status] and redis.call('ZCOUNT', tag .. 'ended:' .. group, '(' .. now - retention, '+inf')
      or redis.call('ZCARD', tag .. 'status:' .. group)
  end
  return counts
end

-- Lists names of tenants after a given one.
function OPERATIONS.tenants(args)
  local after, limit = unpack(args, 5, 6)
  local from = after == '' and '-' or '(' .. after
  return redis.call('ZRANGE', tag .. 'tenants', from, '+', 'BYLEX', 'LIMIT', 0, limit)
end

-- How many ids of tasks a list of workers has, in all.
local MAX_SHOWN = 2000

-- Returns sessions that hold tasks, workers that wait, and the time.
function OPERATIONS.workers(args)
  local limit = args[5]
  local sessions, waiters = {}, {}
  limit = tonumber(limit)
  local flat = redis.call('ZRANGE', tag .. 'sessions', 0, limit - 1, 'WITHSCORES')
  local shown = math.min(MAX_SHOWN_TASKS, math.ceil(2 * MAX_SHOWN / math.max(1, #flat)))
  for i = 1, #flat, 2 do
    local held = redis.call('HLEN', tag .. 'held:' .. flat[i])
    local worker = redis.call('HGET', tag .. 'session:' .. flat[i], 'worker')
    if worker and held > 0 then
      sessions[#sessions + 1] = { worker, tostring(held), flat[i + 1], redis.call('HRANDFIELD', tag .. 'held:' .. flat[i], shown) }
    end
  end
  local waiting = redis.call('ZRANGE', tag .. 'waiters:*', now - LIMITS.idleWorkerTtlMs, '+inf', 'BYSCORE', 'LIMIT', 0, limit)
  for _, worker in ipairs(waiting) do
    local stored = redis.call('HGET', tag .. 'idle-workers', worker)
    if stored then waiters[#waiters + 1] = { worker, string.match(stored, '^%S+ (.*)$') } end
  end
  return { sessions, waiters, tostring(now) }
end

-- Within a priority, tasks are in order of time.
local function to_time(score)
  return score - math.floor(score / 1e13) * 1e13
end

local function oldest_in(key, count)
  if count == 1 then return to_time(tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])) end
  local oldest, from = math.huge, '-inf'
  while true do
    local first = redis.call('ZRANGE', key, from, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
    if not first[1] then return oldest end
    local score = tonumber(first[2])
    local rank = math.floor(score / 1e13)
    oldest, from = math.min(oldest, to_time(score)), string.format('%.0f', (rank + 1) * 1e13)
  end
end

-- Lists queues after a given one. Returns them, what is paused, the time, what runs and who waits.
function OPERATIONS.queues(args)
  local afterAgent, afterTenant, limit = unpack(args, 5, 7)
  local queues, agents = {}, {}
  local after = afterAgent == '' and '-' or '(' .. pair(afterAgent, afterTenant)
  for i, name in ipairs(redis.call('ZRANGE', tag .. 'queues', after, '+', 'BYLEX', 'LIMIT', 0, limit)) do
    local agent, tenant = split(name)
    local ready, oldest = 0, math.huge
    agents[agent] = true
    for _, readyQueue in ipairs({ agent, SUSPECTS .. agent, UNDO .. agent }) do
      local key = tag .. 'ready:' .. pair(readyQueue, tenant)
      local count = redis.call('ZCARD', key)
      if count > 0 then ready, oldest = ready + count, math.min(oldest, oldest_in(key, count)) end
    end
    queues[i] = { agent, tenant, tostring(ready), string.format('%.0f', oldest) }
  end
  local running, paused, waiting = {}, {}, {}
  if after == '-' then
    running = redis.call('HGETALL', tag .. 'running')
    paused = redis.call('SSCAN', tag .. 'paused', 0, 'COUNT', limit)[2]
    for i = 1, #running, 2 do
      if running[i + 1] ~= '0' then agents[running[i]] = true end
    end
  end
  agents['*'] = nil
  for agent in pairs(agents) do
    local count = redis.call('ZCOUNT', tag .. 'waiters:' .. agent, now - LIMITS.idleWorkerTtlMs, '+inf')
    if count > 0 then waiting[#waiting + 1], waiting[#waiting + 2] = agent, tostring(count) end
  end
  return { queues, paused, tostring(now), running, waiting }
end

-- Keeps what a client found out, or tells one client that it is due. Reads and writes: the domain. Returns both.
function OPERATIONS.share(args)
  local maxAgeMs, found = unpack(args, 5, 6)
  if found ~= '' then redis.call('HSET', tag .. 'domain', 'shared', found) return { '0', false } end
  local known = redis.call('HMGET', tag .. 'domain', 'sharedAt', 'shared')
  local age = now - (known[1] or -math.huge)
  local isDue = age >= tonumber(maxAgeMs) or age < 0
  if isDue then redis.call('HSET', tag .. 'domain', 'sharedAt', now) end
  return { isDue and '1' or '0', known[2] }
end

-- Lists names of a tenant's conversations after a given one.
function OPERATIONS.conversations(args)
  local tenant, after, limit = unpack(args, 5, 7)
  local from = after == '' and '-' or '(' .. after
  return redis.call('ZRANGE', tag .. 'conversations:' .. tenant, from, '+', 'BYLEX', 'LIMIT', 0, limit)
end

-- Stops or resumes the delivery of an agent's or a tenant's tasks. Writes: `paused`, ready queues; notifies workers.
function OPERATIONS.pause(args)
  local kind, name, isPaused = unpack(args, 5, 7)
  redis.call(isPaused == '1' and 'SADD' or 'SREM', tag .. 'paused', kind .. ':' .. name)
  if isPaused == '1' then return 'paused' end
  if kind == 'tenant' then resume_tenant(name) else resume_agent(name) end
  return 'resumed'
end

-- Lists open questions of a tenant after a given one, oldest first. Returns ids and questions.
function OPERATIONS.questions(args)
  local tenant, limit, at, last = unpack(args, 5, 8)
  local key, questions = tag .. 'open-questions:' .. tenant, {}
  limit = tonumber(limit)
  local offset = last ~= '' and redis.call('ZCOUNT', key, '-inf', '(' .. at) or 0
  while #questions < 2 * limit do
    local flat = redis.call('ZRANGE', key, offset, offset + limit - 1, 'WITHSCORES')
    if #flat == 0 then break end
    offset = offset + #flat / 2
    for i = 1, #flat, 2 do
      local id = flat[i]
      local isAfter = last == '' or tonumber(flat[i + 1]) > tonumber(at) or is_before(last, id)
      if isAfter and #questions < 2 * limit then
        questions[#questions + 1] = id
        questions[#questions + 1] = redis.call('HGET', tag .. 'questions:' .. string.match(id, '^[^.]*'), id)
      end
    end
  end
  return questions
end
