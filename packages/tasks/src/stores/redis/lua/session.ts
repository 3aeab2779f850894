import { toLua } from '../../../rules/literals.ts';
import { GRACEFUL, LIMITS, OVERDUE } from '../../../rules/rules.ts';
import { columnOf } from './task.ts';

/** Sessions of workers, and what a domain remembers about time. */
export const SESSION: string = /* lua */ `
local function session_named(id)
  local found = redis.call('HMGET', tag .. 'session:' .. id, 'worker', 'leaseMs', 'isOver', 'takeNumber', 'took', 'suspect')
  if not found[1] then return nil end
  return {
    id = id, worker = found[1], leaseMs = tonumber(found[2]), isOver = found[3] == '1', takeNumber = tonumber(found[4] or 0),
    took = found[5] or '', suspect = found[6] or nil,
  }
end

-- Returns whether a session holds a suspect. Progress, a release or the end of the task change that.
local function holds_suspect(session)
  if not session or not session.suspect then return false end
  local found = redis.call('HMGET', tag .. 'task:' .. session.suspect, 'status', 'session', 'attempts')
  local isHeld = (found[1] == 'running' or found[1] == 'cancelling') and found[2] == session.id
  return isHeld and tonumber(found[3] or 0) > ${LIMITS.suspectAttempts}
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

-- Records a worker's visit. After an outage, a failover or a clock step, when no worker could beat, every session
-- gets another lease. Returns whether there is something to sweep: expired sessions, ended tasks past their retention, or
-- waiting ones past their deadline. One worker at a time is asked.
-- tells: the visitor is told, or sweeps itself; others must not use the request up.
local function visit(leaseMs, tells)
  local found = redis.call('HMGET', tag .. 'domain', 'pulse', 'graceUntil', 'graceGiven', 'sweepAskedAt')
  local pulse, graceUntil = tonumber(found[1] or now), tonumber(found[2] or 0)
  local isGraceGiven, askedAt, flat = found[3] == '1', tonumber(found[4] or 0), {}
  local function note(name, value) flat[#flat + 1], flat[#flat + 2] = name, value end
  if pulse > now then
    -- The clock was set back: shorten leases that would now last too long.
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', tag .. 'sessions', '(' .. now + leaseMs, '+inf')) do
      local session = session_named(id)
      redis.call('ZADD', tag .. 'sessions', now + (session and session.leaseMs or leaseMs), id)
    end
    pulse, graceUntil, askedAt = now, math.min(graceUntil, now + leaseMs), math.min(askedAt, now)
    note('pulse', pulse)
    note('graceUntil', graceUntil)
    note('sweepAskedAt', askedAt)
  end
  local first, expiresAt = first_session()
  if first and now - pulse > leaseMs * ${LIMITS.outageShare} and not isGraceGiven then
    graceUntil, isGraceGiven = now + leaseMs, true
    note('graceUntil', graceUntil)
    note('graceGiven', '1')
  end
  local isDue = now - pulse >= leaseMs * ${LIMITS.pulseShare}
  if not found[1] or isDue then note('pulse', now) end
  local hasExpired = first ~= nil and expiresAt <= now and now >= graceUntil
  local isExpired = tells and now - askedAt >= ${LIMITS.sweepAskedMs} and (hasExpired or isDue and (has_old() or first_overdue()))
  if isExpired then note('sweepAskedAt', now) end
  if #flat > 0 then redis.call('HSET', tag .. 'domain', unpack(flat)) end
  return isExpired, graceUntil, isGraceGiven
end
`;

/** The orders for the worker of a task. */
export const ORDERS: string = /* lua */ `
local function orders(task)
  local stop = false
  if task.stopLevel then
    stop = { task.stopLevel, task.stopReason, tostring(task.abortAt), tostring(task.killAt), task.undo }
  end
  local isWatched = task.watchedUntil ~= nil and now < task.watchedUntil
  return { tostring(now), tostring(task.orderNumber), stop, commands_of(task), isWatched and '1' or '0' }
end
`;

/** What a task's work needs beside its head. */
export const LOAD_OF: string = /* lua */ `
local function load_of(task)
  local inputs, history = inputs_of(task), {}
  if task.conversation then
    history = redis.call('LRANGE', tag .. 'history:' .. pair(task.tenant, task.conversation), 0, -1)
  end
  return { inputs, history, context_of(task) }
end
`;

/** Keeps a session alive, however late the beat, as long as no task was taken from it. */
export const BEAT: string = /* lua */ `
local id, count = ARGV[5], tonumber(ARGV[6])
local session = session_named(id)
if not session or session.isOver then return { 'gone' } end
local isExpired, _, isGraceGiven = visit(session.leaseMs, true)
if isGraceGiven then redis.call('HDEL', tag .. 'domain', 'graceGiven') end
local held = redis.call('HLEN', tag .. 'held:' .. id)
if held > 0 then
  redis.call('ZADD', tag .. 'sessions', now + session.leaseMs, id)
  redis.call('PEXPIRE', tag .. 'session:' .. id, ${LIMITS.sessionRetentionMs} + session.leaseMs)
end
for i = 7, #ARGV, 4 do
  -- Only the current holder, and only the latest order: a former holder must not confirm for a new one.
  local task = load(ARGV[i])
  if task and task.told and task.session == id and task.epoch == tonumber(ARGV[i + 1]) and task.claim == ARGV[i + 2]
    and task.orderNumber == tonumber(ARGV[i + 3]) then
    put(task, 'told', nil)
    save(task)
  end
end
local told, more = {}, false
for i, one in ipairs(redis.call('ZRANGE', tag .. 'told:' .. id, 0, ${LIMITS.maxOrders})) do
  local task = i <= ${LIMITS.maxOrders} and load(one)
  if task then told[#told + 1] = { one, tostring(task.epoch), task.claim, orders(task) } else more = true end
end
return { 'alive', told, more and '1' or '0', held ~= count and '1' or '0', isExpired and '1' or '0', tostring(now) }
`;

/** The tasks that a session holds according to the store. */
export const HELD: string = /* lua */ `
local held = {}
for _, id in ipairs(redis.call('HKEYS', tag .. 'held:' .. ARGV[5])) do
  local found = redis.call('HMGET', tag .. 'task:' .. id, 'epoch', 'claim')
  held[#held + 1] = { id, found[1], found[2] }
end
return held
`;

/** Frees tasks of expired sessions, removes records past their retention, and ends overdue tasks, a few at a time. */
export const SWEEP: string = /* lua */ `
local RELEASED = ${columnOf('release')}

-- See \`toDeathDelay\`.
local function death_delay(id, deaths)
  if deaths <= 1 then return 0 end
  local sum = deaths
  for i = 1, #id do sum = sum + string.byte(id, i) end
  local share = 1 + (sum % ${LIMITS.deathDelaySteps}) / ${LIMITS.deathDelaySteps}
  return math.min(${LIMITS.maxDeathDelayMs}, ${LIMITS.deathDelayMs} * 2 ^ (deaths - 2) * share)
end

-- Its epoch increases, so later writes of its worker do not count.
local function free(task, suspect)
  local status, deaths = task.status, task.deaths + 1
  -- A session holds one suspect at most. If it crashed, that task is charged, and none of its neighbours.
  local isCharged = status == 'running' and task.id == suspect and task.attempts > ${LIMITS.suspectAttempts}
  put(task, 'epoch', task.epoch + 1)
  put(task, 'deaths', deaths)
  put(task, 'charges', task.charges + (isCharged and 1 or 0))
  put(task, 'isCharged', isCharged and '1' or nil)
  put(task, 'lostClaim', task.claim)
  put(task, 'claim', nil)
  put(task, 'worker', nil)
  if status == 'running' and deaths >= ${LIMITS.maxDeaths} then return fail_lost(task) end
  put(task, 'session', nil)
  put(task, 'told', nil)
  put(task, 'status', RELEASED[status])
  local delayMs = status ~= 'cancelling' and death_delay(task.id, deaths) or 0
  if delayMs > 0 then put_off(task, now + delayMs) else make_ready(task) end
  make_room(task)
end

local function free_some(id, limit)
  local key, held = tag .. 'session:' .. id, redis.call('HKEYS', tag .. 'held:' .. id)
  -- A session that holds nothing is only idle.
  if #held == 0 then
    redis.call('ZREM', tag .. 'sessions', id)
    return 0
  end
  local session = session_named(id) or {}
  if not session.isOver then
    -- In the step that frees the first task: from here on no beat counts.
    redis.call('HSET', key, 'isOver', '1', 'worker', session.worker or '-', 'leaseMs', session.leaseMs or 1)
    redis.call('PEXPIRE', key, ${LIMITS.sessionRetentionMs})
  end
  local freed = math.min(#held, limit)
  for i = 1, freed do free(load(held[i]), session.suspect) end
  if freed == #held then redis.call('ZREM', tag .. 'sessions', id) end
  return freed
end

local limit, freed = tonumber(ARGV[5]), 0
-- Removing a task takes longer than freeing one.
local few = math.ceil(limit / 4)
local hasMoreTasks, hasMoreConversations = forget_some(few), forget_conversations(few)
for _ = 1, limit do
  local overdue = first_overdue()
  if not overdue then break end
  cancel_task(load(overdue), {
    level = ${toLua(GRACEFUL.level)}, abortMs = ${GRACEFUL.abortMs}, killMs = ${GRACEFUL.killMs}, undo = false,
    reason = reason_of(${toLua(OVERDUE.kind)}, ${toLua(OVERDUE.message)}),
  })
end
local isMoreOld = hasMoreTasks or hasMoreConversations or first_overdue()
local first, expiresAt = first_session()
if first then
  local session = session_named(first)
  local _, graceUntil = visit(session and session.leaseMs or 1, true)
  if now < graceUntil then return { '0', isMoreOld and '1' or '0', tostring(graceUntil), tostring(now) } end
end
-- The clock may have been set back, and the sessions adjusted.
first, expiresAt = first_session()
while first and expiresAt <= now and freed < limit do
  freed = freed + free_some(first, limit - freed)
  first, expiresAt = first_session()
end
local isMore = isMoreOld or (first and expiresAt <= now)
return { tostring(freed), isMore and '1' or '0', first and tostring(expiresAt) or false, tostring(now) }
`;
