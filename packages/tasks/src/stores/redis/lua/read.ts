/** One task of a tenant. Workers ask this each time they are told of a cancel, so it does as little as it can. */
export const GET: string = /* lua */ `
local id = ARGV[5]
local flat = redis.call('HGETALL', tag .. 'task:' .. id)
local tenant, endedAt, forgetAt, commandsSent
for i = 1, #flat, 2 do
  local name = flat[i]
  if name == 'tenant' then tenant = flat[i + 1]
  elseif name == 'endedAt' then endedAt = flat[i + 1]
  elseif name == 'forgetAt' then forgetAt = flat[i + 1]
  elseif name == 'commandsSent' then commandsSent = flat[i + 1] end
end
if tenant ~= ARGV[6] or (forgetAt and tonumber(forgetAt) <= clock()) then return false end
local outcome, commands = false, {}
if endedAt then
  outcome = redis.call('GET', tag .. 'outcome:' .. id)
elseif commandsSent ~= '0' then
  commands = redis.call('HGETALL', tag .. 'commands:' .. id)
end
flat[#flat + 1], flat[#flat + 2] = 'id', id
return { flat, redis.call('LRANGE', tag .. 'inputs:' .. id, 0, -1), outcome, commands }
`;

/** A tenant's tasks in this shard, newest first, through the narrowest index there is. */
export const LIST: string = /* lua */ `
local tenant, status, index, limit, at, last = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9], ARGV[10]
local key, records = tag .. index, {}
local offset = 0
if last ~= '' then
  -- Usually the last one of the page before is still there, and then so is its rank.
  local rank = redis.call('ZREVRANK', key, last)
  offset = rank and rank + 1 or redis.call('ZCOUNT', key, '(' .. at, '+inf')
end
while #records < limit do
  local ids = redis.call('ZREVRANGE', key, offset, offset + limit - 1)
  if #ids == 0 then break end
  offset = offset + #ids
  for _, id in ipairs(ids) do
    local task = #records < limit and load(id)
    local isAfter = last == '' or (task and (task.createdAt < tonumber(at) or (task.createdAt == tonumber(at) and id < last)))
    if task and isAfter and (status == '' or task.status == status) then records[#records + 1] = record(task) end
  end
end
return records
`;

/** Notes that somebody reads a journal along. Writes only when the note would otherwise soon be over. */
export const READ_ALONG: string = /* lua */ `
local watchMs = tonumber(ARGV[9])
local watched = load(ARGV[5])
if watched and watched.tenant == ARGV[6] and not FINAL[watched.status] then
  local before = watched.watchedUntil or 0
  if before < now + watchMs / 2 then
    set(watched, { watchedUntil = now + watchMs })
    if before <= now then tell('command', watched) end
  end
end
`;

/** A piece of a journal. */
export const READ: string = /* lua */ `
local after, limit = tonumber(ARGV[7]), tonumber(ARGV[8])
local task = load(ARGV[5])
if not task or task.tenant ~= ARGV[6] then return {} end
return redis.call('XRANGE', tag .. 'journal:' .. task.id, '(' .. after .. '-0', '+', 'COUNT', limit)
`;

export const CONVERSATION: string = /* lua */ `
local name = #ARGV[5] .. ':' .. ARGV[5] .. ':' .. ARGV[6]
local line = redis.call('HMGET', tag .. 'line:' .. name, 'changedAt', 'current', 'gathering', 'forgetAt')
if not line[1] or (line[4] and tonumber(line[4]) <= now) then return false end
local history = redis.call('LRANGE', tag .. 'history:' .. name, 0, -1)
return { line[1], line[2], line[3], history, redis.call('LRANGE', tag .. 'waiting:' .. name, 0, -1) }
`;

/** What somebody should look at now, with the time since when. */
export const DUE: string = /* lua */ `
return redis.call('ZRANGEBYSCORE', tag .. 'due', '-inf', now, 'WITHSCORES', 'LIMIT', 0, ARGV[5])
`;

/**
 * Says that somebody listens to a stream for a while, and where it ends. A stream that had to be made anew may have
 * missed something.
 */
export const LISTEN: string = /* lua */ `
local key, listenMs = tag .. ARGV[5], ARGV[6]
local last = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
local made = not last
if made then last = { redis.call('XADD', key, '*', 'type', 'listen') } end
redis.call('PEXPIRE', key, listenMs)
return { last[1], made and '1' or '0' }
`;
