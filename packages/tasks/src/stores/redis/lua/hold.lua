-- Gives tasks to sessions.

local function is_paused(kind, name)
  return redis.call('SISMEMBER', tag .. 'paused', kind .. ':' .. name) == 1
end

-- Earlier orders are included, and sent until they are confirmed.
local function hold(task, session, claim, worker)
  put_hold(task, session, claim, worker)
  save(task)
  notify('status', task, true)
end

-- Gives a task to a session. A suspect that has crashed too many sessions fails instead.
local function hold_or_fail(task, session, claim, worker)
  if is_suspect(task) and task.charges >= maxAttempts then
    fail_lost(task)
    return false
  end
  hold(task, session, claim, worker)
  return true
end

-- Records that a session holds tasks. Taking more does not renew it: only beats show that its worker knows its tasks.
local function record_held(id, worker, leaseMs, wasEmpty, suspect, takeNumber, lastTaken)
  local key = tag .. 'session:' .. id
  local flat = { 'worker', worker, 'leaseMs', leaseMs }
  if lastTaken then flat[5], flat[6], flat[7], flat[8] = 'takeNumber', takeNumber, 'lastTaken', lastTaken end
  if suspect then flat[#flat + 1], flat[#flat + 2] = 'suspect', suspect end
  redis.call('HSET', key, unpack(flat))
  if not wasEmpty then return end
  redis.call('PEXPIRE', key, LIMITS.sessionRetentionMs + leaseMs)
  redis.call('ZADD', tag .. 'sessions', now + leaseMs, id)
end

local function taken(task)
  local historyBytes = 0
  if task.conversation then
    historyBytes = tonumber(redis.call('HGET', tag .. 'conversation:' .. pair(task.tenant, task.conversation), 'historyBytes') or 0)
  end
  local content = historyBytes <= bytesLeft and task_load(task) or false
  if content then
    local bytes = historyBytes
    for _, input in ipairs(content[1]) do bytes = bytes + #input end
    if bytes <= bytesLeft then bytesLeft = bytesLeft - bytes else content = false end
  end
  return { head(task), orders(task), content }
end

-- A shortcut of `hold` and `taken` in a batch: a task that got no orders and is no suspect. Its fields and the changes are
-- returned unparsed.
local function hold_plain(id, session, claim, worker)
  local key, at = tag .. 'task:' .. id, {}
  local flat = redis.call('HGETALL', key)
  for i = 1, #flat, 2 do at[flat[i]] = flat[i + 1] end
  if at.status ~= 'init' or at.conversation or at.orderNumber or at.released or at.questions then return nil end
  if at.context or at.deadline or not at.input then return nil end
  local status, agent, epoch = STATUS_AFTER.claim[at.status], at.agent, (tonumber(at.epoch) or 0) + 1
  local attempts, startedAt = (tonumber(at.attempts) or 0) + 1, at.startedAt or now
  if attempts > LIMITS.suspectAttempts then return nil end
  local changes = {
    'status', status, 'stage', 'held', 'epoch', epoch, 'attempts', attempts, 'session', session, 'claim', claim, 'worker', worker,
    'startedAt', startedAt,
  }
  redis.call('HSET', key, unpack(changes))
  local started = batch.started[at.tenant] or { ids = {}, scored = {} }
  batch.started[at.tenant] = started
  started.ids[#started.ids + 1], started.scored[#started.scored + 1], started.scored[#started.scored + 2] = id, at.createdAt, id
  batch.held[#batch.held + 1], batch.held[#batch.held + 2] = id, epoch
  batch.agents[agent] = (batch.agents[agent] or 0) + 1
  redis.call('SPUBLISH', tag .. 'changes:' .. at.tenant, cjson.encode({ 'status', id, at.tenant, worker, '' }))
  local size = #flat
  for i = 1, #changes do flat[size + i] = changes[i] end
  flat[#flat + 1], flat[#flat + 2] = 'id', id
  local content = false
  if #at.input <= bytesLeft then
    content = { { at.input }, {} }
    bytesLeft = bytesLeft - #at.input
  end
  return { { flat, false, {} }, { tostring(now), '0', false, {}, '0' }, content }
end

-- Claims one task by its id.
-- Reads: the session, the domain, the task, its conversation if messages were gathered for it, pauses. Writes: the task,
-- its indexes, the session. Returns the answer, and the task with its orders and what its work needs.
function OPERATIONS.claim(args)
  local id, sessionId, worker, leaseMs, claim, maxBytes = unpack(args, 5, 10)
  leaseMs, bytesLeft = tonumber(leaseMs), tonumber(maxBytes)
  local session = session_named(sessionId)
  if session and session.isOver then return { 'session-ended' } end
  -- A claim says nothing about other sessions, so it must not use up the request to sweep them.
  record_contact(leaseMs, false)
  local task = load(id)
  if not task then return { 'not-found' } end
  if task.stage == 'delayed' and task.policy and task.stageAt <= now then admit_debounced(task) end
  if task.endedAt then return { 'too-late', task.status } end
  if task.stage == 'held' then
    if task.session == sessionId and task.claim == claim then return { 'claimed', taken(task) } end
    return { 'held', redis.call('ZSCORE', tag .. 'sessions', task.session) or tostring(now) }
  end
  if task.stage == 'queued' or task.stage == 'parked' then return { 'waiting' } end
  if task.status ~= 'cancelling' and (is_paused('agent', task.agent) or is_paused('tenant', task.tenant)) then return { 'waiting' } end
  if task.stage == 'delayed' then
    -- A task that only waits for its preferred worker can be claimed; the others have to wait.
    local until_ = (task.worker and task.crashes == 0 and not task.policy) and (task.notBefore or 0) or task.stageAt
    if until_ > now then return { 'waiting', tostring(until_) } end
  end
  local isSuspect = is_suspect(task)
  if isSuspect and holds_suspect(session) then return { 'waiting', tostring(now + LIMITS.suspectWaitMs) } end
  local wasEmpty = redis.call('HLEN', tag .. 'held:' .. sessionId) == 0
  if not hold_or_fail(task, sessionId, claim, worker) then return { 'too-late', task.status } end
  record_held(sessionId, worker, leaseMs, wasEmpty, isSuspect and task.id or nil)
  return { 'claimed', taken(task) }
end
