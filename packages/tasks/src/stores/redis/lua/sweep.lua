-- What remains of workers that are gone.

-- See `toDeathDelay`.
local function crash_backoff(id, crashes)
  if crashes <= 1 then return 0 end
  local sum = crashes
  for i = 1, #id do sum = sum + string.byte(id, i) end
  local share = 1 + (sum % LIMITS.deathDelaySteps) / LIMITS.deathDelaySteps
  return math.min(LIMITS.maxCrashBackoffMs, LIMITS.crashBackoffMs * 2 ^ (crashes - 2) * share)
end

-- Its epoch increases, so later writes of its worker do not count.
local function reclaim(task, suspect)
  local status = task.status
  -- A session holds one suspect at most. If it crashed, that task is charged, and none of its neighbours.
  local isCharged = status == 'running' and task.id == suspect and task.attempts > LIMITS.suspectAttempts
  put_reclaim(task, task.charges + (isCharged and 1 or 0), isCharged and '1' or nil, task.claim)
  if status == 'running' and task.crashes >= LIMITS.maxCrashes then return fail_lost(task) end
  local delayMs = status ~= 'cancelling' and crash_backoff(task.id, task.crashes) or 0
  if delayMs > 0 then delay_until(task, now + delayMs) else make_ready(task) end
  free_slot(task)
end

local function reclaim_some(id, limit)
  local key, held = tag .. 'session:' .. id, redis.call('HKEYS', tag .. 'held:' .. id)
  -- A session that holds nothing is only idle.
  if #held == 0 then
    redis.call('ZREM', tag .. 'sessions', id)
    return 0
  end
  local session = session_named(id) or {}
  if not session.isOver then
    -- In the step that frees the first task: after that no beat counts.
    redis.call('HSET', key, 'isOver', '1', 'worker', session.worker or '-', 'leaseMs', session.leaseMs or 1)
    redis.call('PEXPIRE', key, LIMITS.sessionRetentionMs)
  end
  local reclaimed = math.min(#held, limit)
  for i = 1, reclaimed do reclaim(load(held[i]), session.suspect) end
  if reclaimed == #held then redis.call('ZREM', tag .. 'sessions', id) end
  return reclaimed
end

-- Frees tasks of expired sessions, removes records past their retention, ends overdue tasks, and closes questions that
-- expired, a few at a time.
-- Reads: the domain, sessions, held tasks, `ended`, `idle`, `deadlines`, `expiries`. Writes: all that it frees, removes or ends.
-- Returns how many were freed, whether there are more, when the next session expires, and the time.
function OPERATIONS.sweep(args)
  local limit = tonumber(args[5])
  -- Removing a task takes longer than freeing one.
  local few = math.ceil(limit / 4)
  local hasMoreTasks, hasMoreConversations = purge_some(few), purge_conversations(few)
  for _ = 1, limit do
    local overdue = first_overdue()
    if not overdue then break end
    cancel_task(load(overdue), overdue_stop())
  end
  expire_questions(limit)
  local isMoreOld = hasMoreTasks or hasMoreConversations or first_overdue() or first_expired()
  local first, expiresAt = first_session()
  if first then
    local session = session_named(first)
    local _, graceUntil = record_contact(session and session.leaseMs or 1, true)
    if now < graceUntil then return { '0', isMoreOld and '1' or '0', tostring(graceUntil), tostring(now) } end
    -- The clock may have been set back, and the sessions adjusted.
    first, expiresAt = first_session()
  end
  local reclaimed = 0
  while first and expiresAt <= now and reclaimed < limit do
    reclaimed = reclaimed + reclaim_some(first, limit - reclaimed)
    first, expiresAt = first_session()
  end
  local isMore = isMoreOld or (first and expiresAt <= now)
  return { tostring(reclaimed), isMore and '1' or '0', first and tostring(expiresAt) or false, tostring(now) }
end
