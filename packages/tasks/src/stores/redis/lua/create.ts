/** How many expired tasks are cleared away each time a task is created: constant work. */
const FORGET_MAX = 10;

/** Writes a new task down and lets it into its conversation, if it has one. */
export const CREATE: string = /* lua */ `
-- The server removes expired records; this removes what pointed at them.
local function forget(id, status, tenant, conversation)
  local found = redis.call('HMGET', tag .. 'task:' .. id, 'status', 'forgetAt')
  -- A name that was used again belongs to its new task.
  local gone = not found[1] or (found[2] and tonumber(found[2]) <= now)
  if gone then
    for _, kind in ipairs({ 'task:', 'inputs:', 'outcome:', 'journal:', 'commands:', 'sent:' }) do
      redis.call('UNLINK', tag .. kind .. id)
    end
    redis.call('ZREM', tag .. 'tenant:' .. tenant, id)
    if conversation ~= '' then redis.call('ZREM', tag .. 'said:' .. line_name(tenant, conversation), id) end
  end
  if gone or found[1] ~= status then redis.call('ZREM', tag .. 'status:' .. status .. ':' .. tenant, id) end
end

local function forget_some()
  for _, stub in ipairs(redis.call('ZRANGEBYSCORE', tag .. 'ended', '-inf', now, 'LIMIT', 0, ${FORGET_MAX})) do
    forget(unpack(cjson.decode(stub)))
    redis.call('ZREM', tag .. 'ended', stub)
  end
end

-- Messages that are still held back are taken over by the newest; the older ones end as merged.
local function join_gathering(task)
  local line = line_of(task)
  local held = line.gathering and load(line.gathering)
  if not held then return end
  local inputs = redis.call('LRANGE', tag .. 'inputs:' .. held.id, 0, -1)
  end_unstarted(held, reason_of('merged', 'taken over by ' .. task.id))
  line.gathering = nil
  save_line(line)
  inputs[#inputs + 1] = task.inputs[1]
  task.inputs = inputs
end

local function hold(task, holdMs, policy)
  local line = line_of(task)
  ready(task, now + holdMs)
  set(task, { heldUntil = now + holdMs, heldPolicy = policy })
  line.gathering = task.id
  save_line(line)
  enter(task)
end

-- What whoever created a task is told.
local function receipt(task)
  local superseded = {}
  for id in string.gmatch(task.superseded or '', '%S+') do superseded[#superseded + 1] = id end
  return { 'created', record(task), superseded, task.steered or false }
end

local id, tenant, agent, conversation, key, worker, input, policy, holdMs, nonce = unpack(ARGV, 5)
forget_some()
local existing = load(id)
if existing then
  -- Without a key the id is made of the nonce, so it is the same request.
  if existing.key and existing.nonce ~= nonce then return { 'duplicate', record(existing) } end
  return receipt(existing)
end
local old = redis.call('HMGET', tag .. 'task:' .. id, 'status', 'tenant', 'conversation')
if old[1] then forget(id, old[1], old[2], old[3] or '') end
local task = {
  id = id, fresh = true, tenant = tenant, agent = agent, inputs = { input }, status = 'init', epoch = 0, attempts = 0,
  createdAt = now, commandsSent = 0, position = 0,
}
if conversation ~= '' then task.conversation = conversation end
if key ~= '' then task.key, task.nonce = key, nonce end
if worker ~= '' then task.worker = worker end
if conversation == '' then
  ready(task, now)
  enter(task)
else
  -- Don't let a message that is refused take those along that were accepted and are still held back.
  if policy == 'reject' and tonumber(holdMs) == 0 and line_of(task).current then return { 'rejected' } end
  join_gathering(task)
  if tonumber(holdMs) > 0 then
    hold(task, tonumber(holdMs), policy)
  elseif not admit(task, policy) then
    return { 'rejected' }
  end
end
return receipt(task)
`;
