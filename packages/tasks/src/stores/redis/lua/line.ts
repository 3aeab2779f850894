import { WAITING_MAX } from '@whoa/core';
import { COMMANDS_MAX } from '../../../store.ts';

/** A worker that created a task has this long to take it before others look. */
const HOME_MS = 5_000;

/** The line of tasks in a conversation: one is current, the others wait. */
export const LINE: string = /* lua */ `
-- Both names are anybody's text; the length in front keeps them apart.
local function line_name(tenant, conversation)
  return #tenant .. ':' .. tenant .. ':' .. conversation
end

local function load_line(tenant, conversation)
  local name = line_name(tenant, conversation)
  local found = redis.call('HMGET', tag .. 'line:' .. name, 'current', 'gathering', 'forgetAt')
  if found[3] and tonumber(found[3]) <= now then
    redis.call('DEL', tag .. 'line:' .. name, tag .. 'history:' .. name)
    found = {}
  end
  local waiting = redis.call('LRANGE', tag .. 'waiting:' .. name, 0, -1)
  return { name = name, current = found[1] or nil, gathering = found[2] or nil, waiting = waiting }
end

local function line_of(task)
  if not task.conversation then return nil end
  return load_line(task.tenant, task.conversation)
end

local function save_line(line)
  local key, waiting = tag .. 'line:' .. line.name, tag .. 'waiting:' .. line.name
  redis.call('HSET', key, 'changedAt', now)
  for _, name in ipairs({ 'current', 'gathering' }) do
    if line[name] then redis.call('HSET', key, name, line[name]) else redis.call('HDEL', key, name) end
  end
  redis.call('DEL', waiting)
  if #line.waiting > 0 then redis.call('RPUSH', waiting, unpack(line.waiting)) end
  -- Only an idle conversation is ever forgotten.
  if line.current or line.gathering then
    redis.call('HDEL', key, 'forgetAt')
    redis.call('PERSIST', key)
    redis.call('PERSIST', tag .. 'history:' .. line.name)
  else
    redis.call('HSET', key, 'forgetAt', now + lineRetention)
    redis.call('PEXPIRE', key, lineRetention)
    redis.call('PEXPIRE', tag .. 'history:' .. line.name, lineRetention)
  end
end

local function without(ids, id)
  local rest = {}
  for _, other in ipairs(ids) do if other ~= id then rest[#rest + 1] = other end end
  return rest
end

-- A task whose turn it is. Others look at it too, but not before its own worker had a chance.
local function ready(task, at)
  unset(task, 'waiting', 'heldUntil', 'heldPolicy')
  set(task, { dueAt = task.worker and at + ${HOME_MS} or at })
  if not task.fresh then redis.call('ZADD', tag .. 'due', task.dueAt, task.id) end
end

-- Takes an ended or withdrawn task out of its conversation. Answers whose turn it is, if that changed.
local function leave_line(task)
  local line = line_of(task)
  if not line then return nil end
  if line.gathering == task.id then line.gathering = nil end
  line.waiting = without(line.waiting, task.id)
  if line.current ~= task.id then
    save_line(line)
    return nil
  end
  line.current = table.remove(line.waiting, 1)
  save_line(line)
  local successor = line.current and load(line.current)
  if not successor then return nil end
  ready(successor, now)
  tell('wake', successor)
  return successor.id
end
`;

/** How a task gets into its conversation: it is next, waits, is given to the current one as a message, or is refused. */
export const ADMIT: string = /* lua */ `
-- Writes a fresh task down; one that is there already has been changed in place.
local function enter(task)
  if task.fresh then
    task.fresh = nil
    local inputs = task.inputs
    task.inputs = nil
    local flat = {}
    for name, value in pairs(task) do
      if name ~= 'id' then
        flat[#flat + 1] = name
        flat[#flat + 1] = value
      end
    end
    redis.call('HSET', tag .. 'task:' .. task.id, unpack(flat))
    for _, input in ipairs(inputs) do redis.call('RPUSH', tag .. 'inputs:' .. task.id, input) end
    redis.call('ZADD', tag .. 'tenant:' .. task.tenant, task.createdAt, task.id)
    redis.call('ZADD', tag .. 'status:' .. task.status .. ':' .. task.tenant, task.createdAt, task.id)
    if task.dueAt then redis.call('ZADD', tag .. 'due', task.dueAt, task.id) end
    if task.conversation then
      redis.call('ZADD', tag .. 'said:' .. line_name(task.tenant, task.conversation), task.createdAt, task.id)
    end
  end
  tell('status', task)
end

-- Gives the current task the message; answers which waiting tasks are such messages.
local function give_to(current, task)
  local key, earlier = tag .. 'commands:' .. current.id, {}
  for _, command in ipairs(redis.call('HVALS', key)) do
    local steered = string.match(command, '^([^\\n]*)\\n')
    if steered ~= '' then earlier[steered] = true end
  end
  local input = task.inputs and task.inputs[#task.inputs] or redis.call('LINDEX', tag .. 'inputs:' .. task.id, -1)
  local number = current.commandsSent + 1
  local steer = '{"type":"steer","message":' .. input .. ',"task":"' .. task.id .. '"}'
  redis.call('HSET', key, number, task.id .. '\\n' .. steer)
  set(current, { commandsSent = number })
  tell('command', current)
  return earlier
end

-- A task whose turn comes later. Nobody need look at it before: whoever is current wakes it.
local function wait_turn(task)
  if task.dueAt and not task.fresh then redis.call('ZREM', tag .. 'due', task.id) end
  unset(task, 'heldUntil', 'heldPolicy', 'dueAt')
  set(task, { waiting = '1' })
end

local function supersede(task, line, current)
  local reason, superseded = reason_of('superseded', 'a newer message arrived'), {}
  for _, id in ipairs(line.waiting) do
    local waiting = load(id)
    if waiting then end_unstarted(waiting, reason) end
    superseded[#superseded + 1] = id
  end
  superseded[#superseded + 1] = current.id
  set(task, { superseded = table.concat(superseded, ' ') })
  if current.status == 'init' then
    end_unstarted(current, reason)
    ready(task, now)
    line.current, line.waiting = task.id, {}
  else
    order_stop(current, gracefully(reason))
    wait_turn(task)
    line.waiting = { task.id }
  end
  save_line(line)
  enter(task)
end

-- Answers whether the task was let in; if not, nothing was written.
local function admit(task, policy)
  local line = line_of(task)
  local current = line.current and load(line.current)
  if not current then
    ready(task, now)
    line.current = task.id
    save_line(line)
    enter(task)
    return true
  end
  if policy == 'replace' then
    supersede(task, line, current)
    return true
  end
  if policy == 'reject' or #line.waiting >= ${WAITING_MAX} then return false end
  if policy == 'steer' and not current.stopLevel
    and redis.call('HLEN', tag .. 'commands:' .. current.id) < ${COMMANDS_MAX} then
    set(task, { steered = current.id })
    local earlier, ahead, behind = give_to(current, task), {}, {}
    for _, id in ipairs(line.waiting) do
      if earlier[id] then ahead[#ahead + 1] = id else behind[#behind + 1] = id end
    end
    ahead[#ahead + 1] = task.id
    for _, id in ipairs(behind) do ahead[#ahead + 1] = id end
    line.waiting = ahead
  else
    line.waiting[#line.waiting + 1] = task.id
  end
  wait_turn(task)
  save_line(line)
  enter(task)
  return true
end
`;
