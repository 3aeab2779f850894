-- Takes ready tasks for a session, fairly across tenants. The agents are the arguments after the named ones.
-- Reads: the session, the domain, `later`, lanes, ready tasks, pauses, limits, conversations of tasks that are due.
-- Writes: the taken tasks, their indexes, the session, lanes, the worker that waits. Returns the tasks with their orders
-- and what their work needs, whether it is a repeat, when the next is due, whether to sweep, and the time.
function OPERATIONS.take(args)
  local sessionId, worker, leaseMs, claim, takeNumber, limit, agentsText, maxBytes = unpack(args, 5, 12)
  leaseMs, takeNumber, limit, bytesLeft = tonumber(leaseMs), tonumber(takeNumber), tonumber(limit), tonumber(maxBytes)
  local session = session_named(sessionId)
  local lastNumber = session and session.takeNumber or 0
  if session and session.isOver or (not session and takeNumber > 1) then return { 'session-ended' } end
  if takeNumber < lastNumber then return { 'stale' } end
  if takeNumber > lastNumber + 1 then return { 'session-ended' } end
  local isExpired = visit(leaseMs, true)
  if takeNumber == lastNumber then
    local tasks = {}
    local took, lastTakeClaim = string.match(session.took, '^([^\n]*)\n(.*)$')
    for one in string.gmatch(took, '%S+') do
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
        if task.policy then admit_gathered(task) else make_ready(task) end
      end
    end
    later = redis.call('ZRANGE', tag .. 'delayed', 0, 0, 'WITHSCORES')
  end

  local replies, names = {}, {}
  batch = { held = {}, agents = {}, started = {} }

  local hasPaused = redis.call('EXISTS', tag .. 'paused') == 1

  -- Lanes of suspects and of tasks to undo are rare: one look at all of them.
  local reserved = {}
  for i = 13, #args do
    reserved[#reserved + 1] = tag .. 'lanes:' .. UNDO .. args[i]
    reserved[#reserved + 1] = tag .. 'lanes:' .. SUSPECTS .. args[i]
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
  local function has_room(lane)
    if lane.isExempt then return true end
    if hasPaused and is_paused('tenant', lane.tenant) then return false end
    if maxTenant == 0 then return true end
    local running, stopping = redis.call('ZCARD', tag .. 'status:running:' .. lane.tenant), tag .. 'status:cancelling:' .. lane.tenant
    running = running - redis.call('SCARD', tag .. 'parked:' .. lane.tenant)
    if batch.started[lane.tenant] then running = running + #batch.started[lane.tenant].ids end
    if running >= maxTenant then return false end
    if running + redis.call('ZCARD', stopping) < maxTenant then return true end
    -- A task that no worker holds does not run: it waits to be settled.
    for _, one in ipairs(redis.call('ZRANGE', stopping, 0, -1)) do
      if redis.call('HGET', tag .. 'task:' .. one, 'stage') == 'held' then running = running + 1 end
      if running >= maxTenant then return false end
    end
    return true
  end

  local function close_lane(lane)
    redis.call('ZREM', tag .. 'lanes:' .. lane.name, lane.tenant)
    lane.isClosed = true
  end

  local function close_empty(lane)
    close_lane(lane)
    close_queue(lane.name, lane.tenant)
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

  -- Returns the open lanes that waited longest. Others may follow those that waited no longer than the horizon.
  local function first_lanes(isExempt)
    local lanes, horizon = {}, math.huge
    local function add(name, agent)
      local found = redis.call('ZRANGE', tag .. 'lanes:' .. name, 0, limit - 1, 'WITHSCORES')
      if #found == 2 * limit then horizon = math.min(horizon, tonumber(found[2 * limit])) end
      for j = 1, #found, 2 do
        lanes[#lanes + 1] = {
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
    if #lanes > 1 then table.sort(lanes, function(a, b) return a.tick < b.tick end) end
    return lanes, horizon
  end

  -- A served lane moves behind all others; an empty one is removed.
  local function keep_lane(lane, tick)
    lane.isClosed = true
    if redis.call('EXISTS', ready_key(lane.name, lane.tenant)) == 0 then return close_empty(lane) end
    redis.call('ZADD', tag .. 'lanes:' .. lane.name, tick, lane.tenant)
  end

  -- Leaves a lane because of a limit. One that was served in this step is empty, or moves behind all others.
  local function leave_lane(lane, isFull)
    lane.isClosed = true
    local isEmpty = lane.isServed and redis.call('EXISTS', ready_key(lane.name, lane.tenant)) == 0
    if isFull and not isEmpty then
      redis.call('SADD', tag .. 'capped:' .. lane.tenant, lane.name)
      close_lane(lane)
    elseif lane.isServed then
      keep_lane(lane, redis.call('HINCRBY', tag .. 'domain', 'tick', 1))
    end
  end

  -- Takes from each lane in turn. Returns whether there may be more.
  local function serve(lanes, horizon)
    local isMore = horizon < math.huge
    local first, served, closed = 1, 0, 0
    while #replies < limit and first <= #lanes do
      local lane = lanes[first]
      -- Lanes that were not read come before it.
      if isMore and (lane.isServed or lane.tick > horizon) then break end
      local isLast = first == #lanes and not isMore and maxTenant == 0 and maxAgent == 0
      local isSuspect = string.sub(lane.name, 1, #SUSPECTS) == SUSPECTS
      if (not lane.isExempt and not is_open(lane.agent)) or (isSuspect and not mayTakeSuspect) then
        leave_lane(lane, false)
      elseif not has_room(lane) then
        leave_lane(lane, true)
      else
        local count = isLast and not isSuspect and limit - #replies or 1
        local popped = redis.call('ZPOPMIN', ready_key(lane.name, lane.tenant), count)
        if #popped == 0 then close_empty(lane) end
        for i = 1, #popped, 2 do hold_one(popped[i]) end
        if isSuspect and not mayTakeSuspect then keep_lane(lane, redis.call('HINCRBY', tag .. 'domain', 'tick', 1)) end
      end
      first = first + 1
      if lane.isClosed then
        closed = closed + 1
      else
        served = served + 1
        lane.isServed = true
        lanes[#lanes + 1] = lane
      end
    end
    local tick = served > 0 and redis.call('HINCRBY', tag .. 'domain', 'tick', served)
    for i = first, #lanes do
      local lane = lanes[i]
      if lane.isServed then keep_lane(lane, tick + i - #lanes) end
    end
    return isMore and #replies < limit and served + closed > 0
  end

  -- What is being stopped comes first, however many tenants wait.
  for _, isExempt in ipairs({ true, false }) do
    for _ = 1, LIMITS.maxPromoted do
      if #replies >= limit or not serve(first_lanes(isExempt)) then break end
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
    note_held(sessionId, worker, leaseMs, wasEmpty, suspect, takeNumber, table.concat(names, ' ') .. '\n' .. claim)
  end

  local noted = redis.call('HGET', tag .. 'waiting', worker)
  if #replies < limit then
    -- The worker waits for more; written again only when the last record would soon expire.
    local at, agents = string.match(noted or '', '^(%S+) (.*)$')
    if agents ~= agentsText or tonumber(at) < now - LIMITS.idleWorkerTtlMs / 2 then
      if agents then unpark(worker, cjson.decode(agents)) end
      redis.call('HSET', tag .. 'waiting', worker, now .. ' ' .. agentsText)
      redis.call('ZADD', tag .. 'waiters:*', now, worker)
      for i = 13, #args do redis.call('ZADD', tag .. 'waiters:' .. args[i], now, worker) end
    end
  elseif noted then
    unpark(worker, cjson.decode(string.match(noted, '^%S+ (.*)$')))
  end

  return { 'taken', replies, '0', later[2] or false, isExpired and '1' or '0', tostring(now) }
end
