-- Takes the units of one message from two budgets, once. Atomic, because Redis runs one script at a time.
-- KEYS: mark, the member's budget, the mesh's budget (one hash tag, so one slot of a cluster)
-- ARGV: member cost, member period, mesh cost, mesh period, life of a mark (microseconds each),
--       the instant in microseconds, or '' for this server's clock
-- Answers {0, 0} granted, {1, 0} granted earlier, {2, microseconds} too soon.

local now = tonumber(ARGV[6])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- The mark carries its own end: a key may outlive it, and an instant given from outside must count.
local marked_until = tonumber(redis.call('GET', KEYS[1]))
if marked_until and now < marked_until then
  return {1, 0}
end

local function spend(key, cost, period)
  local arrival = tonumber(redis.call('GET', key)) or 0
  if arrival > now + 2 * period then
    arrival = 0 -- written by a clock that was ahead
  end
  arrival = math.max(arrival, now) + cost
  return arrival, math.max(arrival - (now + period), 0)
end

-- A key lives one period past its last grant; by then its budget is whole and the key says nothing.
local function store(key, instant, life)
  redis.call('SET', key, string.format('%.0f', instant), 'PX', math.ceil(life / 1000))
end

local member_period, mesh_period = tonumber(ARGV[2]), tonumber(ARGV[4])
local member_arrival, member_wait = spend(KEYS[2], tonumber(ARGV[1]), member_period)
local mesh_arrival, mesh_wait = spend(KEYS[3], tonumber(ARGV[3]), mesh_period)
local wait = math.max(member_wait, mesh_wait)
if wait > 0 then
  return {2, wait}
end

local mark_life = tonumber(ARGV[5])
store(KEYS[1], now + mark_life, mark_life)
store(KEYS[2], member_arrival, member_period)
store(KEYS[3], mesh_arrival, mesh_period)
return {0, 0}
