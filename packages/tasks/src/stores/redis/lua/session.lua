-- Sessions of workers, and what a domain remembers about time.

local function session_named(id)
  local found = redis.call('HMGET', tag .. 'session:' .. id, 'worker', 'leaseMs', 'isOver', 'takeNumber', 'lastTaken', 'suspect')
  if not found[1] then return nil end
  return {
    id = id, worker = found[1], leaseMs = tonumber(found[2]), isOver = found[3] == '1', takeNumber = tonumber(found[4] or 0),
    lastTaken = found[5] or '', suspect = found[6] or nil,
  }
end

-- Returns whether a session holds a suspect. Progress, a release or the end of the task change that.
local function holds_suspect(session)
  if not session or not session.suspect then return false end
  local found = redis.call('HMGET', tag .. 'task:' .. session.suspect, 'status', 'session', 'attempts')
  local isHeld = (found[1] == 'running' or found[1] == 'cancelling') and found[2] == session.id
  return isHeld and tonumber(found[3] or 0) > LIMITS.suspectAttempts
end

local function first_session()
  local found = redis.call('ZRANGE', tag .. 'sessions', 0, 0, 'WITHSCORES')
  if found[1] then return found[1], tonumber(found[2]) end
end

-- Returns whether an ended task is past its retention.
local function has_old()
  local first = redis.call('ZRANGE', tag .. 'ended', 0, 0, 'WITHSCORES')
  return first[1] and first[2] + retention <= now
end

-- Returns the waiting task whose deadline passed first.
local function first_overdue()
  return redis.call('ZRANGE', tag .. 'deadlines', '-inf', now, 'BYSCORE', 'LIMIT', 0, 1)[1]
end

-- Returns the task about which something expired first.
local function first_expired()
  return redis.call('ZRANGE', tag .. 'expiries', '-inf', now, 'BYSCORE', 'LIMIT', 0, 1)[1]
end

-- Records a worker's contact. After an outage, a failover or a clock step, when no worker could beat, every session
-- gets another lease. Returns whether there is something to sweep: expired sessions, ended tasks past their retention,
-- waiting ones past their deadline, or questions that expired. One worker at a time is asked.
-- maySweep: the worker learns that a sweep is due, or sweeps itself; others must not use the request up.
local function record_contact(leaseMs, maySweep)
  local found = redis.call('HMGET', tag .. 'domain', 'lastContactAt', 'graceUntil', 'isGraceGranted', 'sweepRequestedAt')
  local lastContactAt, graceUntil = tonumber(found[1] or now), tonumber(found[2] or 0)
  local isGraceGranted, askedAt, flat = found[3] == '1', tonumber(found[4] or 0), {}
  local function set(name, value) flat[#flat + 1], flat[#flat + 2] = name, value end
  if lastContactAt > now then
    -- The clock was set back: shorten leases that would now last too long.
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', tag .. 'sessions', '(' .. now + leaseMs, '+inf')) do
      local session = session_named(id)
      redis.call('ZADD', tag .. 'sessions', now + (session and session.leaseMs or leaseMs), id)
    end
    lastContactAt, graceUntil, askedAt = now, math.min(graceUntil, now + leaseMs), math.min(askedAt, now)
    set('lastContactAt', lastContactAt)
    set('graceUntil', graceUntil)
    set('sweepRequestedAt', askedAt)
  end
  local first, expiresAt = first_session()
  if first and now - lastContactAt > leaseMs * LIMITS.outageShare and not isGraceGranted then
    graceUntil, isGraceGranted = now + leaseMs, true
    set('graceUntil', graceUntil)
    set('isGraceGranted', '1')
  end
  local isDue = now - lastContactAt >= leaseMs * LIMITS.contactShare
  if not found[1] or isDue then set('lastContactAt', now) end
  local hasExpired = first ~= nil and expiresAt <= now and now >= graceUntil
  local mayAsk = maySweep and now - askedAt >= LIMITS.sweepRequestIntervalMs
  local isExpired = mayAsk and (hasExpired or isDue and (has_old() or first_overdue() or first_expired()))
  if isExpired then set('sweepRequestedAt', now) end
  if #flat > 0 then redis.call('HSET', tag .. 'domain', unpack(flat)) end
  return isExpired, graceUntil, isGraceGranted
end

-- Returns the orders for the worker of a task.
local function orders(task)
  local stop = false
  if task.stopLevel then
    stop = { task.stopLevel, task.stopReason, tostring(task.abortAt), tostring(task.killAt), task.undo }
  end
  local isWatched = task.watchedUntil ~= nil and now < task.watchedUntil
  local open, pending = question_counts(task)
  local questions = open + pending > 0 and redis.call('HGETALL', live_key(task)) or nil
  return { tostring(now), tostring(task.orderNumber), stop, read_commands(task), isWatched and '1' or '0', questions }
end

-- Returns what a task's work needs in addition to its head.
local function task_load(task)
  local inputs, history = input_owner(task), {}
  if task.conversation then
    history = redis.call('LRANGE', tag .. 'history:' .. pair(task.tenant, task.conversation), 0, -1)
  end
  return { inputs, history, read_context(task) }
end

-- Keeps a session alive, however late the beat, as long as no task was taken from it. Four more arguments for each order
-- that is confirmed: id, epoch, claim, orderNumber.
-- Reads: the session, the domain, tasks with unconfirmed orders. Writes: the session's lease, confirmations, the domain.
-- Returns the unconfirmed orders, and whether to count or to sweep.
function OPERATIONS.heartbeat(args)
  local sessionId, count = unpack(args, 5, 6)
  local session = session_named(sessionId)
  if not session or session.isOver then return { 'session-ended' } end
  local isExpired, _, isGraceGranted = record_contact(session.leaseMs, true)
  if isGraceGranted then redis.call('HDEL', tag .. 'domain', 'isGraceGranted') end
  local held = redis.call('HLEN', tag .. 'held:' .. sessionId)
  if held > 0 then
    redis.call('ZADD', tag .. 'sessions', now + session.leaseMs, sessionId)
    redis.call('PEXPIRE', tag .. 'session:' .. sessionId, LIMITS.sessionRetentionMs + session.leaseMs)
  end
  for i = 7, #args, 4 do
    -- Only the current holder, and only the latest order: a former holder must not confirm for a new one.
    local task = load(args[i])
    if task and task.hasPendingOrders and task.session == sessionId and task.epoch == tonumber(args[i + 1]) and task.claim == args[i + 2]
      and task.orderNumber == tonumber(args[i + 3]) then
      put(task, 'hasPendingOrders', nil)
      save(task)
    end
  end
  local pending, more = {}, false
  for i, one in ipairs(redis.call('ZRANGE', tag .. 'pending-orders:' .. sessionId, 0, LIMITS.maxOrders)) do
    local task = i <= LIMITS.maxOrders and load(one)
    if task then pending[#pending + 1] = { one, tostring(task.epoch), task.claim, orders(task) } else more = true end
  end
  return { 'alive', pending, more and '1' or '0', held ~= tonumber(count) and '1' or '0', isExpired and '1' or '0', tostring(now) }
end

-- Reads: the held tasks. Returns the tasks that a session holds according to the store.
function OPERATIONS.held(args)
  local session = args[5]
  local held = {}
  for _, id in ipairs(redis.call('HKEYS', tag .. 'held:' .. session)) do
    local found = redis.call('HMGET', tag .. 'task:' .. id, 'epoch', 'claim')
    held[#held + 1] = { id, found[1], found[2] }
  end
  return held
end
