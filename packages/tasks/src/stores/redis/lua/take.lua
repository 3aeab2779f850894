-- Takes ready tasks for a session, fairly across tenants. The agents are the arguments after the named ones.
-- Reads: the session, the domain, `delayed`, ready queues, ready tasks, pauses, limits, conversations of tasks that are due.
-- Writes: the taken tasks, their indexes, the session, ready queues, the worker that waits. Returns the tasks with their orders
-- and what their work needs, whether it is a repeat, when the next is due, whether to sweep, and the time.
function OPERATIONS.take(args)
  local sessionId, worker, leaseMs, claim, takeNumber, limit, agentsText, maxBytes = unpack(args, 5, 12)
  leaseMs, takeNumber, limit, bytesLeft = tonumber(leaseMs), tonumber(takeNumber), tonumber(limit), tonumber(maxBytes)
  local session = session_named(sessionId)
  local lastNumber = session and session.takeNumber or 0
  if session and session.isOver or (not session and takeNumber > 1) then return { 'session-ended' } end
  if takeNumber < lastNumber then return { 'stale' } end
  if takeNumber > lastNumber + 1 then return { 'session-ended' } end
  local isExpired = record_contact(leaseMs, true)
  if takeNumber == lastNumber then
    local tasks = {}
    local ids, lastTakeClaim = string.match(session.lastTaken, '^([^\n]*)\n(.*)$')
    for one in string.gmatch(ids, '%S+') do
      local task = load(one)
      -- Excludes tasks that the session has since claimed by id: they already run.
      if task and task.stage == 'held' and task.claim == lastTakeClaim then tasks[#tasks + 1] = taken(task) end
    end
    return { 'taken', tasks, '1', false, isExpired and '1' or '0', tostring(now) }
  end

  local later = redis.call('ZRANGE', tag .. 'delayed', 0, 0, 'WITHSCORES')
  if later[1] and tonumber(later[2]) <= now then
    for _, one in ipairs(redis.call('ZRANGEBYSCORE', tag .. 'delayed', '-inf', now, 'LIMIT', 0, LIMITS.maxPromoted)) do
      local task = load(one)
      -- A message that was due before it may have ended it.
      if task.stage == 'delayed' then
        if task.policy then admit_debounced(task) else make_ready(task) end
      end
    end
    later = redis.call('ZRANGE', tag .. 'delayed', 0, 0, 'WITHSCORES')
  end

  local replies, names = {}, {}
  batch = { held = {}, agents = {}, started = {} }

  local hasPaused = redis.call('EXISTS', tag .. 'paused') == 1

  -- Ready queues of suspects and of tasks to undo are rare: one look at all of them.
  local reserved = {}
  for i = 13, #args do
    reserved[#reserved + 1] = tag .. 'ready-queues:' .. UNDO .. args[i]
    reserved[#reserved + 1] = tag .. 'ready-queues:' .. SUSPECTS .. args[i]
  end
  local hasReserved = #reserved > 0 and redis.call('EXISTS', unpack(reserved)) > 0
  local mayTakeSuspect, suspect = hasReserved and not holds_suspect(session), nil

  local function is_open(agent)
    if agent == '*' then return true end
    if hasPaused and is_paused('agent', agent) then return false end
    if maxAgent == 0 then return true end
    return tonumber(redis.call('HGET', tag .. 'running', agent) or 0) + (batch.agents[agent] or 0) < maxAgent
  end

  -- A pause or a limit never delays a cancel.
  local function has_slot(readyQueue)
    if readyQueue.isExempt then return true end
    if hasPaused and is_paused('tenant', readyQueue.tenant) then return false end
    if maxTenant == 0 then return true end
    local running = redis.call('ZCARD', tag .. 'status:running:' .. readyQueue.tenant)
    local stopping = tag .. 'status:cancelling:' .. readyQueue.tenant
    running = running - redis.call('SCARD', tag .. 'parked:' .. readyQueue.tenant)
    if batch.started[readyQueue.tenant] then running = running + #batch.started[readyQueue.tenant].ids end
    if running >= maxTenant then return false end
    if running + redis.call('ZCARD', stopping) < maxTenant then return true end
    -- A task that no worker holds does not run: it waits to be settled.
    for _, one in ipairs(redis.call('ZRANGE', stopping, 0, -1)) do
      if redis.call('HGET', tag .. 'task:' .. one, 'stage') == 'held' then running = running + 1 end
      if running >= maxTenant then return false end
    end
    return true
  end

  local function close_ready_queue(readyQueue)
    redis.call('ZREM', tag .. 'ready-queues:' .. readyQueue.name, readyQueue.tenant)
    readyQueue.isClosed = true
  end

  local function close_empty(readyQueue)
    close_ready_queue(readyQueue)
    close_queue(readyQueue.name, readyQueue.tenant)
  end

  local function hold_one(one)
    -- A task that became ready in this step is already known.
    local reply = HAS_SHORTCUTS and not loaded[one] and hold_plain(one, sessionId, claim, worker)
    if not reply then
      local task = load(one)
      before[task].popped = true
      local isSuspect = is_suspect(task)
      if not hold_or_fail(task, sessionId, claim, worker) then return end
      if isSuspect then suspect, mayTakeSuspect = one, false end
      reply = taken(task)
    end
    names[#names + 1], replies[#replies + 1] = one, reply
  end

  -- Returns the open ready queues that waited longest. Others may follow those that waited no longer than the horizon.
  local function first_ready_queues(isExempt)
    local readyQueues, horizon = {}, math.huge
    local function add(name, agent)
      local found = redis.call('ZRANGE', tag .. 'ready-queues:' .. name, 0, limit - 1, 'WITHSCORES')
      if #found == 2 * limit then horizon = math.min(horizon, tonumber(found[2 * limit])) end
      for j = 1, #found, 2 do
        readyQueues[#readyQueues + 1] = {
          name = name, agent = agent, isExempt = isExempt, tenant = found[j], tick = tonumber(found[j + 1]),
        }
      end
    end
    if isExempt then add('*', '*') end
    for i = 13, #args do
      local agent = args[i]
      if isExempt then
        if hasReserved then add(UNDO .. agent, agent) end
      elseif is_open(agent) then
        add(agent, agent)
        if mayTakeSuspect then add(SUSPECTS .. agent, agent) end
      end
    end
    if #readyQueues > 1 then table.sort(readyQueues, function(a, b) return a.tick < b.tick end) end
    return readyQueues, horizon
  end

  -- A served ready queue moves behind all others; an empty one is removed.
  local function update_ready_queue(readyQueue, tick)
    readyQueue.isClosed = true
    if redis.call('EXISTS', ready_key(readyQueue.name, readyQueue.tenant)) == 0 then return close_empty(readyQueue) end
    redis.call('ZADD', tag .. 'ready-queues:' .. readyQueue.name, tick, readyQueue.tenant)
  end

  -- Leaves a ready queue because of a limit. One that was served in this step is empty, or moves behind all others.
  local function leave_ready_queue(readyQueue, isFull)
    readyQueue.isClosed = true
    local isEmpty = readyQueue.isServed and redis.call('EXISTS', ready_key(readyQueue.name, readyQueue.tenant)) == 0
    if isFull and not isEmpty then
      redis.call('SADD', tag .. 'capped:' .. readyQueue.tenant, readyQueue.name)
      close_ready_queue(readyQueue)
    elseif readyQueue.isServed then
      update_ready_queue(readyQueue, redis.call('HINCRBY', tag .. 'domain', 'tick', 1))
    end
  end

  -- Takes from each ready queue in turn. Returns whether there may be more.
  local function serve(readyQueues, horizon)
    local isMore = horizon < math.huge
    local first, served, closed = 1, 0, 0
    while #replies < limit and first <= #readyQueues do
      local readyQueue = readyQueues[first]
      -- Ready queues that were not read come before it.
      if isMore and (readyQueue.isServed or readyQueue.tick > horizon) then break end
      local isLast = first == #readyQueues and not isMore and maxTenant == 0 and maxAgent == 0
      local isSuspect = string.sub(readyQueue.name, 1, #SUSPECTS) == SUSPECTS
      if (not readyQueue.isExempt and not is_open(readyQueue.agent)) or (isSuspect and not mayTakeSuspect) then
        leave_ready_queue(readyQueue, false)
      elseif not has_slot(readyQueue) then
        leave_ready_queue(readyQueue, true)
      else
        local count = isLast and not isSuspect and limit - #replies or 1
        local popped = redis.call('ZPOPMIN', ready_key(readyQueue.name, readyQueue.tenant), count)
        if #popped == 0 then close_empty(readyQueue) end
        for i = 1, #popped, 2 do hold_one(popped[i]) end
        if isSuspect and not mayTakeSuspect then update_ready_queue(readyQueue, redis.call('HINCRBY', tag .. 'domain', 'tick', 1)) end
      end
      first = first + 1
      if readyQueue.isClosed then
        closed = closed + 1
      else
        served = served + 1
        readyQueue.isServed = true
        readyQueues[#readyQueues + 1] = readyQueue
      end
    end
    local tick = served > 0 and redis.call('HINCRBY', tag .. 'domain', 'tick', served)
    for i = first, #readyQueues do
      local readyQueue = readyQueues[i]
      if readyQueue.isServed then update_ready_queue(readyQueue, tick + i - #readyQueues) end
    end
    return isMore and #replies < limit and served + closed > 0
  end

  -- What is being stopped comes first, no matter how many tenants wait.
  for _, isExempt in ipairs({ true, false }) do
    for _ = 1, LIMITS.maxPromoted do
      if #replies >= limit or not serve(first_ready_queues(isExempt)) then break end
    end
  end

  if #replies > 0 then
    local wasEmpty = redis.call('HLEN', tag .. 'held:' .. sessionId) == 0
    redis.call('HSET', tag .. 'held:' .. sessionId, unpack(batch.held))
    for tenant, started in pairs(batch.started) do
      redis.call('ZREM', tag .. 'status:init:' .. tenant, unpack(started.ids))
      redis.call('ZADD', tag .. 'status:' .. STATUS_AFTER.claim.init .. ':' .. tenant, unpack(started.scored))
    end
    for agent, count in pairs(batch.agents) do redis.call('HINCRBY', tag .. 'running', agent, count) end
    record_held(sessionId, worker, leaseMs, wasEmpty, suspect, takeNumber, table.concat(names, ' ') .. '\n' .. claim)
  end

  local stored = redis.call('HGET', tag .. 'idle-workers', worker)
  if #replies < limit then
    -- The worker waits for more; written again only when the last record would soon expire.
    local at, agents = string.match(stored or '', '^(%S+) (.*)$')
    if agents ~= agentsText or tonumber(at) < now - LIMITS.idleWorkerTtlMs / 2 then
      if agents then unpark(worker, cjson.decode(agents)) end
      redis.call('HSET', tag .. 'idle-workers', worker, now .. ' ' .. agentsText)
      redis.call('ZADD', tag .. 'waiters:*', now, worker)
      for i = 13, #args do redis.call('ZADD', tag .. 'waiters:' .. args[i], now, worker) end
    end
  elseif stored then
    unpark(worker, cjson.decode(string.match(stored, '^%S+ (.*)$')))
  end

  return { 'taken', replies, '0', later[2] or false, isExpired and '1' or '0', tostring(now) }
end
