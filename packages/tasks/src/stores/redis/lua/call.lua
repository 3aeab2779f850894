-- What one call has. A library stays loaded, so `begin` sets all of it again.

-- The prefix of the shard's keys, the format of its data, and the server's clock in whole milliseconds.
local tag, format, now
-- For how long ended tasks and idle conversations are kept.
local retention, conversationRetention
-- How many workers a suspect may crash, and how many tasks may run at the same time; 0 for any.
local maxAttempts, maxTenant, maxAgent
-- The format for a new shard, the limits and the shards, as the caller wrote them.
local settings, ownFormat, ownShards
-- Each task and conversation is one table per call, however often it is read; a task's previous values are kept separately.
local loaded, before, changed, conversations
-- A take holds many tasks: changes to its session and to the lists of statuses are collected here, and written once.
local batch
-- Inputs and histories are included up to a total size; the rest must be loaded.
local bytesLeft

-- A shortcut does what its rule does, for the tasks that most are. A test switches all off and compares every key.
local HAS_SHORTCUTS = true

-- Every operation by its name. The first four arguments belong to `begin`.
local OPERATIONS = {}

-- Both names may contain any text; the length in front keeps them apart.
local function pair(first, second)
  return #first .. ':' .. first .. ':' .. second
end

local function split(name)
  local length, rest = string.match(name, '^(%d+):(.*)$')
  return string.sub(rest, 1, length), string.sub(rest, length + 2)
end

local function read_settings(text)
  settings = text
  ownFormat, maxAttempts, maxTenant, maxAgent, ownShards = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%S+)$')
  maxAttempts, maxTenant, maxAgent = tonumber(maxAttempts), tonumber(maxTenant), tonumber(maxAgent)
end

-- Refuses to read or write a shard whose format this version cannot use: another process may have changed it meanwhile.
-- A shard learns the format and a new shard count from the first client that writes to it; after that clients with the
-- old count are rejected. Returns why.
local function find_mismatch(canWrite)
  local layout = redis.call('HMGET', tag .. 'layout', 'format', 'shards')
  format = tonumber(layout[1] or ownFormat)
  if format < OLDEST_FORMAT or format > FORMAT then return redis.error_reply('OTHERFORMAT ' .. format) end
  if layout[2] == ownShards then return nil end
  if layout[2] and string.sub(ownShards, 1, #layout[2] + 1) ~= layout[2] .. ',' then
    return redis.error_reply('OTHERSHARDS ' .. layout[2])
  end
  if canWrite then redis.call('HSET', tag .. 'layout', 'shards', ownShards, 'format', format) end
end

local function begin(keys, args)
  local time = redis.call('TIME')
  tag, now = keys[1], time[1] * 1000 + math.floor(time[2] / 1000) + args[1]
  retention, conversationRetention = tonumber(args[2]), tonumber(args[3])
  loaded, before, changed, conversations, batch, bytesLeft = {}, {}, {}, {}, nil, nil
  if args[4] ~= settings then read_settings(args[4]) end
end

-- Runs an operation. canWrite: nil for one on the layout itself, which is not compared.
local function run(name, canWrite, keys, args)
  begin(keys, args)
  return canWrite ~= nil and find_mismatch(canWrite) or OPERATIONS[name](args)
end
