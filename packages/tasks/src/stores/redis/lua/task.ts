import { scheduleOf } from '@whoa/core';

/** Every script begins with this: where the shard's keys are, and whole milliseconds of the server's clock. */
export const PROLOGUE: string = /* lua */ `
local tag = KEYS[1]
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
end
`;

/** When and under which rules a move happens. */
export const MOMENT: string = /* lua */ `
local now = clock()
local retention, lineRetention, attemptsMax = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
`;

/** A task is a hash of small fields. What may be large has a key of its own, so that the hash stays compact. */
export const TASK: string = /* lua */ `
local NUMBERS = {
  epoch = true, attempts = true, leaseUntil = true, heldUntil = true, dueAt = true, createdAt = true, startedAt = true,
  endedAt = true, forgetAt = true, commandsSent = true, position = true, journalBytes = true, abortAt = true, killAt = true,
  watchedUntil = true,
}
local FINAL = { success = true, failed = true, cancelled = true }

local function load(id)
  local flat = redis.call('HGETALL', tag .. 'task:' .. id)
  if #flat == 0 then return nil end
  local task = {}
  for i = 1, #flat, 2 do
    local name = flat[i]
    if NUMBERS[name] then task[name] = tonumber(flat[i + 1]) else task[name] = flat[i + 1] end
  end
  task.id = id
  -- Past its retention it is gone, whether or not the server has removed it yet.
  if task.forgetAt and task.forgetAt <= now then return nil end
  return task
end

-- Everything there is to know of a task, as plain replies.
local function record(task)
  local flat, size = {}, 0
  for name, value in pairs(task) do
    flat[size + 1], flat[size + 2] = name, tostring(value)
    size = size + 2
  end
  local outcome, commands = false, {}
  if task.endedAt then
    outcome = redis.call('GET', tag .. 'outcome:' .. task.id)
  elseif task.commandsSent > 0 then
    commands = redis.call('HGETALL', tag .. 'commands:' .. task.id)
  end
  return { flat, redis.call('LRANGE', tag .. 'inputs:' .. task.id, 0, -1), outcome, commands }
end
`;

/** How others hear of a task. */
export const TELL: string = /* lua */ `
-- No stream, no listener: then there is nobody to tell. A worker that is to stop gets the order along.
local function tell(kind, task)
  local hint = { 'type', kind, 'id', task.id, 'tenant', task.tenant }
  if task.conversation then hint[7], hint[8] = 'conversation', task.conversation end
  if task.worker then
    hint[#hint + 1] = 'worker'
    hint[#hint + 1] = task.worker
  end
  redis.call('XADD', tag .. 'changes', 'NOMKSTREAM', 'MAXLEN', '~', '10000', '*', unpack(hint))
  if not task.worker then return end
  if kind == 'cancel' then
    local order = { task.epoch, task.stopLevel, task.abortAt, task.killAt, task.undo, task.seal or '-', task.stopReason }
    hint[#hint + 1], hint[#hint + 2] = 'order', table.concat(order, ' ')
  end
  redis.call('XADD', tag .. 'inbox:' .. task.worker, 'NOMKSTREAM', 'MAXLEN', '~', '10000', '*', unpack(hint))
end
`;

/** How a task is changed. A fresh task is a table until it is inserted. */
export const CHANGE: string = /* lua */ `
local function set(task, changes)
  local flat = {}
  for name, value in pairs(changes) do
    task[name] = value
    flat[#flat + 1] = name
    flat[#flat + 1] = value
  end
  if not task.fresh then redis.call('HSET', tag .. 'task:' .. task.id, unpack(flat)) end
end

local function unset(task, ...)
  local names = {}
  for _, name in ipairs({ ... }) do
    if task[name] ~= nil then names[#names + 1] = name end
    task[name] = nil
  end
  if #names > 0 and not task.fresh then redis.call('HDEL', tag .. 'task:' .. task.id, unpack(names)) end
end

-- Call it before the status is set: the index of the old one has to be left.
local function reindex(task, status)
  if task.status == status then return end
  redis.call('ZREM', tag .. 'status:' .. task.status .. ':' .. task.tenant, task.id)
  redis.call('ZADD', tag .. 'status:' .. status .. ':' .. task.tenant, task.createdAt, task.id)
end

local function reason_of(kind, message)
  return '{"kind":"' .. kind .. '","message":"' .. message .. '","at":' .. now .. '}'
end

-- The one way a task ends. From here on its keys live on borrowed time.
local function conclude(task, status, outcome)
  reindex(task, status)
  if task.dueAt then redis.call('ZREM', tag .. 'due', task.id) end
  if task.commandsSent > 0 then
    redis.call('DEL', tag .. 'commands:' .. task.id)
    redis.call('PEXPIRE', tag .. 'sent:' .. task.id, retention)
  end
  set(task, { status = status, endedAt = now, forgetAt = now + retention })
  unset(task, 'leaseUntil', 'dueAt', 'waiting', 'heldUntil', 'heldPolicy')
  redis.call('SET', tag .. 'outcome:' .. task.id, outcome, 'PX', retention)
  redis.call('PEXPIRE', tag .. 'task:' .. task.id, retention)
  redis.call('PEXPIRE', tag .. 'inputs:' .. task.id, retention)
  if task.position > 0 then redis.call('PEXPIRE', tag .. 'journal:' .. task.id, retention) end
  -- The indexes know no expiry: what is needed to clean them is kept until somebody creates a task.
  local stub = cjson.encode({ task.id, status, task.tenant, task.conversation or '' })
  redis.call('ZADD', tag .. 'ended', now + retention, stub)
end

-- Ends a task that never ran. It does not leave its conversation: that is for the caller to do.
local function end_unstarted(task, reason)
  conclude(task, 'cancelled', '{"status":"cancelled","reason":' .. reason .. '}')
  tell('status', task)
end
`;

const GRACEFUL = scheduleOf('graceful', 0);

/** Stopping: levels only rise, deadlines only come closer, the first reason stays. */
export const STOP: string = /* lua */ `
local RANK = { drain = 1, abort = 2, kill = 3 }

local function higher(a, b)
  if b and RANK[b] > RANK[a] then return b end
  return a
end

-- How hard a stop is by now: it climbs by itself as its deadlines pass.
local function level_now(task)
  local climbed = task.stopLevel
  if now >= task.killAt then climbed = 'kill' elseif now >= task.abortAt then climbed = 'abort' end
  return higher(climbed, task.stopLevel)
end

local function gracefully(reason)
  return { level = '${GRACEFUL.level}', abortMs = ${GRACEFUL.abortAt}, killMs = ${GRACEFUL.killAt}, undo = false, reason = reason }
end

local function order_stop(task, asked)
  local abortAt, killAt = now + asked.abortMs, now + asked.killMs
  local level, undo, answer = asked.level, asked.undo, 'accepted'
  if task.stopLevel then
    local before = level_now(task)
    local stronger = RANK[level] > RANK[before] or abortAt < task.abortAt or killAt < task.killAt
      or (undo and task.undo ~= '1')
    if not stronger then return 'already' end
    answer = 'escalated'
    level, undo = higher(level, before), undo or task.undo == '1'
    abortAt, killAt = math.min(abortAt, task.abortAt), math.min(killAt, task.killAt)
  end
  reindex(task, 'cancelling')
  set(task, {
    status = 'cancelling', stopLevel = level, abortAt = abortAt, killAt = killAt, undo = undo and '1' or '0',
    stopReason = task.stopReason or asked.reason,
  })
  tell('cancel', task)
  return answer
end
`;

/** What a worker should know, and whether it still may. */
export const ORDERS: string = /* lua */ `
local function orders(task)
  local stop = false
  if task.stopLevel then
    stop = { task.stopLevel, task.stopReason, tostring(task.abortAt), tostring(task.killAt), task.undo }
  end
  local commands = {}
  if task.commandsSent > 0 then commands = redis.call('HGETALL', tag .. 'commands:' .. task.id) end
  local watched = task.watchedUntil ~= nil and now < task.watchedUntil
  return { 'orders', tostring(now), tostring(task.leaseUntil or now), stop, commands, watched and '1' or '0' }
end
`;

/** The task, if the claim still holds. Compares numbers: an epoch of 1.5 is nobody's. */
export const OWN: string = /* lua */ `
local function own(task, epoch)
  return task and task.epoch == epoch and (task.status == 'running' or task.status == 'cancelling')
end
`;
