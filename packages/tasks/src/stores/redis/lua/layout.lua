-- How the shards are laid out; kept next to the first of them.

-- Reads: layout. Returns the format, the shards and the stored settings, each '' if it is not known.
function OPERATIONS.readLayout()
  -- The routing key must never exist: only then does a server that gives the shard away refuse all scripts.
  if redis.call('EXISTS', tag) == 1 then return { 'anchor', '' } end
  local layout = redis.call('HMGET', tag .. 'layout', 'format', 'shards', unpack(STORED))
  for i = 1, 2 + #STORED do layout[i] = layout[i] or '' end
  return layout
end

-- Writes the layout, unless another client already has, and the settings that are given. Returns what `readLayout` returns.
function OPERATIONS.writeLayout(args)
  local newFormat, shards = unpack(args, 5, 6)
  redis.call('HSETNX', tag .. 'layout', 'format', newFormat)
  redis.call('HSETNX', tag .. 'layout', 'shards', shards)
  for i, name in ipairs(STORED) do
    if args[6 + i] ~= '' then redis.call('HSET', tag .. 'layout', name, args[6 + i]) end
  end
  return OPERATIONS.readLayout()
end

-- Returns the format of a shard.
function OPERATIONS.readFormat()
  return format
end

-- Writes the newest format to a shard.
function OPERATIONS.writeFormat()
  redis.call('HSET', tag .. 'layout', 'format', FORMAT)
end
