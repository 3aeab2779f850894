import { LIMITS } from '../../../rules/rules.ts';
import { HOLD_PLAIN } from './plain.ts';
import { SESSION_RETENTION_MS } from './session.ts';
import { columnOf } from './task.ts';

/** Gives tasks to sessions. */
export const HOLD: string = /* lua */ `
local CLAIMED = ${columnOf('claim')}

local function is_paused(kind, name)
  return redis.call('SISMEMBER', tag .. 'paused', kind .. ':' .. name) == 1
end

-- Earlier orders are included, and sent until they are confirmed.
local function hold(task, session, claim, worker)
  put(task, 'status', CLAIMED[task.status])
  put(task, 'stage', 'held')
  if task.released then put(task, 'released', nil) end
  if task.policy then put(task, 'policy', nil) end
  put(task, 'epoch', task.epoch + 1)
  put(task, 'attempts', task.attempts + 1)
  put(task, 'session', session)
  put(task, 'claim', claim)
  put(task, 'worker', worker)
  put(task, 'told', task.orderNumber > 0 and '1' or nil)
  if not task.startedAt then put(task, 'startedAt', now) end
  save(task)
  tell('status', task, true)
end

-- Records that a session holds tasks. Taking more does not renew it: only beats show that its worker knows its tasks.
local function note_held(id, worker, leaseMs, wasEmpty, takeNumber, took)
  local key = tag .. 'session:' .. id
  local flat = { 'worker', worker, 'leaseMs', leaseMs }
  if took then flat[5], flat[6], flat[7], flat[8] = 'takeNumber', takeNumber, 'took', took end
  redis.call('HSET', key, unpack(flat))
  if not wasEmpty then return end
  redis.call('PEXPIRE', key, ${SESSION_RETENTION_MS} + leaseMs)
  redis.call('ZADD', tag .. 'sessions', now + leaseMs, id)
end

-- Inputs and histories are included up to a total size; the rest must be loaded.
local bytesLeft

local function taken(task)
  local historyBytes = 0
  if task.conversation then
    historyBytes = tonumber(redis.call('HGET', tag .. 'conversation:' .. pair(task.tenant, task.conversation), 'historyBytes') or 0)
  end
  local load = historyBytes <= bytesLeft and load_of(task) or false
  if load then
    local bytes = historyBytes
    for _, input in ipairs(load[1]) do bytes = bytes + #input end
    if bytes <= bytesLeft then bytesLeft = bytesLeft - bytes else load = false end
  end
  return { head(task), orders(task), load }
end
`;

/** Takes ready tasks for a session, fairly across tenants. */
export const TAKE: string = /* lua */ `
local id, worker, leaseMs, claim, number, limit, agentsText = unpack(ARGV, 5, 11)
leaseMs, number, limit, bytesLeft = tonumber(leaseMs), tonumber(number), tonumber(limit), tonumber(ARGV[12])
local session = session_named(id)
local takeNumber = session and session.takeNumber or 0
if session and session.isOver or (not session and number > 1) then return { 'gone' } end
if number < takeNumber then return { 'stale' } end
if number > takeNumber + 1 then return { 'gone' } end
local isExpired = visit(leaseMs, true)
if number == takeNumber then
  local tasks = {}
  local took, tookBy = string.match(session.took, '^([^\\n]*)\\n(.*)$')
  for one in string.gmatch(took, '%S+') do
    local task = load(one)
    -- Excludes tasks that the session has since claimed by id: they already run.
    if task and task.stage == 'held' and task.claim == tookBy then tasks[#tasks + 1] = taken(task) end
  end
  return { 'taken', tasks, '1', false, isExpired and '1' or '0', tostring(now) }
end

local later = redis.call('ZRANGE', tag .. 'later', 0, 0, 'WITHSCORES')
if later[1] and tonumber(later[2]) <= now then
  for _, one in ipairs(redis.call('ZRANGEBYSCORE', tag .. 'later', '-inf', now, 'LIMIT', 0, ${LIMITS.maxMoved})) do
    local task = load(one)
    -- A message that was due before it may have ended it.
    if task.stage == 'later' then
      if task.policy then admit_gathered(task) else make_ready(task) end
    end
  end
  later = redis.call('ZRANGE', tag .. 'later', 0, 0, 'WITHSCORES')
end

local replies, names = {}, {}
batch = { held = {}, agents = {} }

local hasPaused = redis.call('EXISTS', tag .. 'paused') == 1

local function is_open(agent)
  if agent == '*' then return true end
  if hasPaused and is_paused('agent', agent) then return false end
  if maxAgent == 0 then return true end
  return tonumber(redis.call('HGET', tag .. 'running', agent) or 0) + (batch.agents[agent] or 0) < maxAgent
end

local function has_room(lane)
  if lane.agent == '*' then return true end
  if hasPaused and is_paused('tenant', lane.tenant) then return false end
  if maxTenant == 0 then return true end
  local running = redis.call('ZCARD', tag .. 'status:running:' .. lane.tenant)
  return running + redis.call('ZCARD', tag .. 'status:cancelling:' .. lane.tenant) < maxTenant
end

local function close_lane(lane)
  redis.call('ZREM', tag .. 'lanes:' .. lane.agent, lane.tenant)
  lane.isClosed = true
end

local function close_empty(lane)
  close_lane(lane)
  redis.call('ZREM', tag .. 'queues', pair(lane.agent, lane.tenant))
end

${HOLD_PLAIN}
local function hold_all(popped)
  for i = 1, #popped, 2 do
    local one = popped[i]
    names[#names + 1] = one
    -- A task that became ready in this step is already known.
    local reply = not loaded[one] and hold_plain(one)
    if not reply then
      local task = load(one)
      before[task].popped = true
      hold(task, id, claim, worker)
      reply = taken(task)
    end
    replies[#replies + 1] = reply
  end
end

-- Returns the open lanes of all agents that waited longest. isMore: there are others.
local function first_lanes()
  local lanes, isMore = {}, false
  for i = 12, #ARGV do
    local agent = i == 12 and '*' or ARGV[i]
    if is_open(agent) then
      local found = redis.call('ZRANGE', tag .. 'lanes:' .. agent, 0, limit - 1, 'WITHSCORES')
      if #found == 2 * limit then isMore = true end
      for j = 1, #found, 2 do
        lanes[#lanes + 1] = { agent = agent, tenant = found[j], tick = tonumber(found[j + 1]) }
      end
    end
  end
  if #lanes > 1 then table.sort(lanes, function(a, b) return a.tick < b.tick end) end
  return lanes, isMore
end

-- Takes from each lane in turn. Returns how many had no task.
local function serve(lanes)
  local first, served, closed = 1, 0, 0
  while #replies < limit and first <= #lanes do
    local lane = lanes[first]
    local isLast = first == #lanes and maxTenant == 0 and maxAgent == 0
    local popped = {}
    if not is_open(lane.agent) then
      lane.isClosed = true
    elseif not has_room(lane) then
      redis.call('SADD', tag .. 'capped:' .. lane.tenant, lane.agent)
      close_lane(lane)
    else
      popped = redis.call('ZPOPMIN', ready_key(lane.agent, lane.tenant), isLast and limit - #replies or 1)
      if #popped == 0 then close_empty(lane) else hold_all(popped) end
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
  -- Served lanes move behind all others; empty ones are removed.
  local tick = served > 0 and redis.call('HINCRBY', tag .. 'domain', 'tick', served)
  for i = first, #lanes do
    local lane = lanes[i]
    if lane.isServed then
      if redis.call('EXISTS', ready_key(lane.agent, lane.tenant)) == 0 then
        close_empty(lane)
      else
        redis.call('ZADD', tag .. 'lanes:' .. lane.agent, tick + i - #lanes, lane.tenant)
      end
    end
  end
  return closed
end

for _ = 1, ${LIMITS.maxMoved} do
  local lanes, isMore = first_lanes()
  local closed = serve(lanes)
  if #replies >= limit or not isMore or closed == 0 then break end
end

if #replies > 0 then
  local wasEmpty = redis.call('HLEN', tag .. 'held:' .. id) == 0
  redis.call('HSET', tag .. 'held:' .. id, unpack(batch.held))
  for agent, count in pairs(batch.agents) do redis.call('HINCRBY', tag .. 'running', agent, count) end
  note_held(id, worker, leaseMs, wasEmpty, number, table.concat(names, ' ') .. '\\n' .. claim)
end

local noted = redis.call('HGET', tag .. 'waiting', worker)
if #replies < limit then
  -- The worker waits for more; written again only when the last record would soon expire.
  local at, agents = string.match(noted or '', '^(%S+) (.*)$')
  if agents ~= agentsText or tonumber(at) < now - ${LIMITS.parkedMs / 2} then
    if agents then unpark(worker, cjson.decode(agents)) end
    redis.call('HSET', tag .. 'waiting', worker, now .. ' ' .. agentsText)
    redis.call('ZADD', tag .. 'waiters:*', now, worker)
    for i = 13, #ARGV do redis.call('ZADD', tag .. 'waiters:' .. ARGV[i], now, worker) end
  end
elseif noted then
  unpark(worker, cjson.decode(string.match(noted, '^%S+ (.*)$')))
end

return { 'taken', replies, '0', later[2] or false, isExpired and '1' or '0', tostring(now) }
`;

/** Claims one task by its id. */
export const CLAIM: string = /* lua */ `
local id, sessionId, worker, leaseMs, claim = unpack(ARGV, 5, 9)
leaseMs, bytesLeft = tonumber(leaseMs), tonumber(ARGV[10])
local session = session_named(sessionId)
if session and session.isOver then return { 'gone' } end
-- A claim says nothing about other sessions, so it must not use up the request to sweep them.
visit(leaseMs, false)
local task = load(id)
if not task then return { 'unknown' } end
if task.stage == 'later' and task.policy then
  if task.stageAt > now then return { 'waiting', tostring(task.stageAt) } end
  admit_gathered(task)
end
if task.endedAt then return { 'too-late', task.status } end
if task.stage == 'held' then
  if task.session == sessionId and task.claim == claim then return { 'claimed', taken(task) } end
  return { 'held', redis.call('ZSCORE', tag .. 'sessions', task.session) or tostring(now) }
end
if task.stage == 'queue' then return { 'waiting' } end
if lane_of(task) ~= '*' and (is_paused('agent', task.agent) or is_paused('tenant', task.tenant)) then return { 'waiting' } end
if task.stage == 'later' then
  -- A task that only waits for its preferred worker can be claimed; the others have to wait.
  local until_ = (task.worker and task.deaths == 0) and (task.notBefore or 0) or task.stageAt
  if until_ > now then return { 'waiting', tostring(until_) } end
end
local wasEmpty = redis.call('HLEN', tag .. 'held:' .. sessionId) == 0
hold(task, sessionId, claim, worker)
note_held(sessionId, worker, leaseMs, wasEmpty)
return { 'claimed', taken(task) }
`;
