/** The Lua scripts that read and write threads in Redis. */
import type * as Effect from "effect/Effect"
import { type Script, scriptsWith } from "../../../support/store/redis.ts"
import type { Fault } from "../tables.ts"
import { beginning } from "../transfer/moving.ts"

/**
 * The beginning of every script. All keys begin with `KEYS[1]`:
 *
 * - `ids`: the number of each thread by its id
 * - `listed:0`, `listed:1`: ids of open and archived threads, the last change first
 * - `said`: numbers of threads by their newest entry
 * - `moved`: the place that the threads were moved to
 * - `waits:0`, `waits:1`: names of open requests of open and archived threads, by time. A name is the id of the request, a
 *   line feed, and the id of the thread
 * - `asked`: names of open requests in their order; `asks`: the JSON of each
 * - `waits:upto`: the next older thread to index; `done` after the last
 * - `t:<number>`: a thread; `e:` its own entries, `i:` their places by id, `l:` the places of labels, `w:` names of its open
 *   requests
 *
 * An optional id is `-`, or `+` and the id. The place of an entry is `<number>:<index>`. A record is the place of the
 * parent, the step, and the text from the client. Scripts check everything before the first write.
 */
const shared = `
local P = KEYS[1]
local call = redis.call
local function thread(k) return P .. 't:' .. k end
local function keyOf(id) return call('HGET', P .. 'ids', id) end
local function originOf(k)
  local o = call('HMGET', thread(k), 'origin', 'originCount')
  if not o[1] or o[1] == '' then return nil end
  return o[1], tonumber(o[2])
end
local function find(k, id)
  local upto
  while k do
    local n = call('HGET', P .. 'i:' .. k, id)
    if n and (not upto or tonumber(n) < upto) then return k, n end
    k, upto = originOf(k)
  end
end
local function line(k)
  local parts, upto = {}, tonumber(call('HGET', thread(k), 'count'))
  while k do
    table.insert(parts, 1, { k, upto })
    k, upto = originOf(k)
  end
  return parts
end
local function recordAt(place)
  local k, n = string.match(place, '^(.*):(.*)$')
  return call('HGET', P .. 'e:' .. k, n)
end
local function placeOf(k, mark)
  if mark == '-' then return '-', 0 end
  local at, n = find(k, string.sub(mark, 2))
  if not at then return nil end
  local place = at .. ':' .. n
  return place, tonumber(string.match(recordAt(place), '^%S+ (%d+) '))
end
local function putEntry(k, n, id, place, step, part)
  call('HSET', P .. 'e:' .. k, n, place .. ' ' .. step .. ' ' .. part)
  call('HSET', P .. 'i:' .. k, id, n)
end
local function setListed(id, archived, at)
  call('ZADD', P .. 'listed:' .. archived, '-' .. at, id)
end
local function clear(k)
  for _, one in ipairs(call('SMEMBERS', P .. 'w:' .. k)) do
    call('ZREM', P .. 'waits:0', one)
    call('ZREM', P .. 'waits:1', one)
    call('ZREM', P .. 'asked', one)
    call('HDEL', P .. 'asks', one)
  end
  call('DEL', P .. 'w:' .. k)
end
local function wait(k, id, archived, waits)
  if waits == '' then return end
  clear(k)
  for _, one in ipairs(cjson.decode(waits)) do
    local name = one[1] .. '\\n' .. id
    call('ZADD', P .. 'waits:' .. archived, one[2], name)
    call('ZADD', P .. 'asked', 0, name)
    call('HSET', P .. 'asks', name, one[3])
    call('SADD', P .. 'w:' .. k, name)
  end
end
local function drop(k)
  while k do
    local origin = originOf(k)
    call('UNLINK', thread(k), P .. 'e:' .. k, P .. 'i:' .. k, P .. 'l:' .. k)
    call('ZREM', P .. 'said', k)
    if not origin then return end
    local forks = call('HINCRBY', thread(origin), 'forks', -1)
    if forks > 0 or call('HGET', thread(origin), 'id') ~= '' then return end
    k = origin
  end
end
`

/** Refuses a change of moved threads. */
const unmoved = `
local moved = call('GET', P .. 'moved')
if moved then return redis.error_reply('${beginning}' .. moved) end
`

const fields = `'id', 'created', 'updated', 'metadata', 'archived', 'leaf', 'step', 'origin', 'originThread', 'originEntry'`

const script = scriptsWith(shared)

/** Runs a script. */
export type Run = (script: Script, ...args: ReadonlyArray<string | number>) => Effect.Effect<unknown, Fault>

/** Id. */
export const find = script(`
local k = keyOf(ARGV[1])
if not k then return {} end
return call('HMGET', thread(k), ${fields})
`)

/** Id, time, metadata. */
export const create = script(`${unmoved}if keyOf(ARGV[1]) then return 0 end
local k = call('INCR', P .. 'next')
call('HSET', thread(k), 'id', ARGV[1], 'created', ARGV[2], 'updated', ARGV[2], 'metadata', ARGV[3], 'archived', 0,
  'leaf', '-', 'place', '-', 'step', 0, 'count', 0, 'forks', 0, 'origin', '')
call('HSET', P .. 'ids', ARGV[1], k)
setListed(ARGV[1], 0, ARGV[2])
return 1
`)

/** Reserves a number for a thread. */
export const number = script("return tostring(call('INCR', P .. 'next'))")

/** Number, index of the first, then of each entry: id, record, whether it is a label. Expires after an hour. */
export const stage = script(`${unmoved}local k, n = ARGV[1], tonumber(ARGV[2])
for i = 3, #ARGV, 3 do
  call('HSET', P .. 'e:' .. k, n, ARGV[i + 1])
  call('HSET', P .. 'i:' .. k, ARGV[i], n)
  if ARGV[i + 2] == '1' then call('RPUSH', P .. 'l:' .. k, n) end
  n = n + 1
end
for _, kind in ipairs({ 'e:', 'i:', 'l:' }) do call('EXPIRE', P .. kind .. k, 3600) end
return 1
`)

/**
 * Number, id, time of creation, metadata, archived, leaf, its place, its step, count, newest time of an entry, time of
 * the last change, thread and entry of its former origin, waits.
 */
export const publish = script(`${unmoved}local k = ARGV[1]
if keyOf(ARGV[2]) then
  call('UNLINK', P .. 'e:' .. k, P .. 'i:' .. k, P .. 'l:' .. k)
  return 0
end
if call('HLEN', P .. 'e:' .. k) ~= tonumber(ARGV[9]) then return -1 end
for _, kind in ipairs({ 'e:', 'i:', 'l:' }) do call('PERSIST', P .. kind .. k) end
call('HSET', thread(k), 'id', ARGV[2], 'created', ARGV[3], 'updated', ARGV[11], 'metadata', ARGV[4], 'archived', ARGV[5],
  'leaf', ARGV[6], 'place', ARGV[7], 'step', ARGV[8], 'count', ARGV[9], 'forks', 0, 'origin', '',
  'originThread', ARGV[12], 'originEntry', ARGV[13])
call('HSET', P .. 'ids', ARGV[2], k)
setListed(ARGV[2], ARGV[5], ARGV[11])
call('ZADD', P .. 'said', '-' .. ARGV[10], k)
wait(k, ARGV[2], ARGV[5], ARGV[14])
return 1
`)

/** Source, entry, id, time, metadata, waits. */
export const fork = script(`${unmoved}local source = keyOf(ARGV[1])
if not source then return 'Gone' end
if keyOf(ARGV[3]) then return 'Exists' end
local place, step = placeOf(source, ARGV[2])
if not place then return 'Gone' end
local k = call('INCR', P .. 'next')
call('HSET', thread(k), 'id', ARGV[3], 'created', ARGV[4], 'updated', ARGV[4], 'metadata', ARGV[5], 'archived', 0,
  'leaf', ARGV[2], 'place', place, 'step', step, 'count', 0, 'forks', 0, 'origin', source,
  'originCount', call('HGET', thread(source), 'count'), 'originThread', ARGV[1], 'originEntry', ARGV[2])
call('HINCRBY', thread(source), 'forks', 1)
call('HSET', P .. 'ids', ARGV[3], k)
setListed(ARGV[3], 0, ARGV[4])
wait(k, ARGV[3], 0, ARGV[6])
return 'Done'
`)

/** Id, leaf, parent (`=` for the leaf), time, waits (empty: unchanged), then of each entry: id, text from the client. */
export const append = script(`
local k = keyOf(ARGV[1])
if not k then return {} end
local t = call('HMGET', thread(k), 'archived', 'leaf', 'place', 'step', 'count')
if t[1] == '1' or t[2] ~= ARGV[2] then return {} end
for i = 6, #ARGV, 2 do
  if find(k, ARGV[i]) then return { '', ARGV[i] } end
end
local place, step = t[3], tonumber(t[4])
if ARGV[3] ~= '=' then place, step = placeOf(k, ARGV[3]) end
if not place then return {} end
${unmoved}
local n = tonumber(t[5])
for i = 6, #ARGV, 2 do
  step = step + 1
  putEntry(k, n, ARGV[i], place, step, ARGV[i + 1])
  place = k .. ':' .. n
  n = n + 1
end
call('HSET', thread(k), 'leaf', '+' .. ARGV[#ARGV - 1], 'place', place, 'step', step, 'count', n, 'updated', ARGV[4])
setListed(ARGV[1], 0, ARGV[4])
call('ZADD', P .. 'said', 'LT', '-' .. ARGV[4], k)
wait(k, ARGV[1], 0, ARGV[5])
return { tostring(step) }
`)

/** Id, target, time, id of the label, text from the client. */
export const addLabel = script(`${unmoved}local k = keyOf(ARGV[1])
if not k then return {} end
local t = call('HMGET', thread(k), 'archived', 'count')
if t[1] == '1' then return {} end
if find(k, ARGV[4]) then return { '', ARGV[4] } end
local place, step = placeOf(k, ARGV[2])
if not place then return {} end
putEntry(k, t[2], ARGV[4], place, step + 1, ARGV[5])
call('RPUSH', P .. 'l:' .. k, t[2])
call('HSET', thread(k), 'count', tonumber(t[2]) + 1, 'updated', ARGV[3])
setListed(ARGV[1], 0, ARGV[3])
return { tostring(step + 1) }
`)

/** Id, from, to, time, waits. */
export const move = script(`${unmoved}local k = keyOf(ARGV[1])
if not k then return 0 end
local t = call('HMGET', thread(k), 'archived', 'leaf')
if t[1] == '1' or t[2] ~= ARGV[2] then return 0 end
local place, step = placeOf(k, ARGV[3])
if not place then return 0 end
call('HSET', thread(k), 'leaf', ARGV[3], 'place', place, 'step', step, 'updated', ARGV[4])
setListed(ARGV[1], 0, ARGV[4])
wait(k, ARGV[1], 0, ARGV[5])
return 1
`)

/** Id, field, its value, time. */
export const update = script(`${unmoved}local k = keyOf(ARGV[1])
if not k then return 0 end
call('HSET', thread(k), ARGV[2], ARGV[3], 'updated', ARGV[4])
local archived = call('HGET', thread(k), 'archived')
call('ZREM', P .. 'listed:' .. (archived == '1' and '0' or '1'), ARGV[1])
setListed(ARGV[1], archived, ARGV[4])
local before = P .. 'waits:' .. (archived == '1' and '0' or '1')
for _, one in ipairs(call('SMEMBERS', P .. 'w:' .. k)) do
  local at = call('ZSCORE', before, one)
  if at then
    call('ZREM', before, one)
    call('ZADD', P .. 'waits:' .. archived, at, one)
  end
end
return 1
`)

/** Id. A thread with forks stays without its id. */
export const remove = script(`${unmoved}local k = keyOf(ARGV[1])
if not k then return 0 end
call('HDEL', P .. 'ids', ARGV[1])
call('ZREM', P .. 'listed:0', ARGV[1])
call('ZREM', P .. 'listed:1', ARGV[1])
call('ZREM', P .. 'said', k)
clear(k)
if tonumber(call('HGET', thread(k), 'forks')) > 0 then
  call('HSET', thread(k), 'id', '', 'metadata', '{}')
else
  drop(k)
end
return 1
`)

/** Id, id of an entry. */
export const entry = script(`
local k = keyOf(ARGV[1])
if not k then return {} end
local place = placeOf(k, '+' .. ARGV[2])
if not place then return {} end
return { recordAt(place) }
`)

/** Id, id of an entry or `@` and its place, limit. Gives the place of the next entry and the records; `!` for a lost one. */
export const path = script(`
local k, place = keyOf(ARGV[1]), nil
if string.sub(ARGV[2], 1, 1) == '@' then place = string.sub(ARGV[2], 2)
elseif k then place = placeOf(k, ARGV[2]) end
if not place then return {} end
local out = { '-' }
while place ~= '-' and #out <= tonumber(ARGV[3]) do
  local record = recordAt(place)
  if not record then return k and { '!' } or {} end
  table.insert(out, record)
  place = string.match(record, '^%S+')
end
out[1] = place
return out
`)

/** Id. */
export const labels = script(`
local out, k = {}, keyOf(ARGV[1])
if not k then return out end
for _, part in ipairs(line(k)) do
  for _, n in ipairs(call('LRANGE', P .. 'l:' .. part[1], 0, -1)) do
    if tonumber(n) < part[2] then table.insert(out, call('HGET', P .. 'e:' .. part[1], n)) end
  end
end
return out
`)

/** Id, offset, limit. */
export const entries = script(`
local out, k = {}, keyOf(ARGV[1])
if not k then return out end
local skip, left = tonumber(ARGV[2]), tonumber(ARGV[3])
for _, part in ipairs(line(k)) do
  for n = skip, part[2] - 1 do
    if left == 0 then return out end
    table.insert(out, call('HGET', P .. 'e:' .. part[1], n))
    left = left - 1
  end
  skip = math.max(0, skip - part[2])
end
return out
`)

/** Lists members of a set behind a score and member (`-inf`: from the first). */
const behind = `
local function behind(set, score, member, count)
  local out, offset = {}, 0
  while #out < count do
    local part = call('ZRANGE', set, score, '+inf', 'BYSCORE', 'LIMIT', offset, 100, 'WITHSCORES')
    if #part == 0 then return out end
    offset = offset + #part / 2
    for i = 1, #part, 2 do
      local isBefore = score ~= '-inf' and tonumber(part[i + 1]) == tonumber(score) and part[i] <= member
      if not isBefore and #out < count then table.insert(out, { part[i], part[i + 1] }) end
    end
  end
  return out
end
`

/** Archived, score, id, limit. */
export const list = script(`${behind}
local out = {}
for _, found in ipairs(behind(P .. 'listed:' .. ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]))) do
  table.insert(out, call('HMGET', thread(keyOf(found[1])), ${fields}))
end
return out
`)

/** Score, number, limit. Gives numbers and scores of threads, the newest entry first. */
export const newest = script(`${behind}
local out = {}
for _, found in ipairs(behind(P .. 'said', ARGV[1], ARGV[2], tonumber(ARGV[3]))) do
  table.insert(out, found[1])
  table.insert(out, found[2])
end
return out
`)

/** Id. */
export const numberOf = script("return keyOf(ARGV[1]) or ''")

/** Number, end (`-`: of the thread), limits of entries and bytes. Gives id, archived, the next end, and records. */
export const talk = script(`
local k = ARGV[1]
local t = call('HMGET', thread(k), 'id', 'archived', 'count')
if not t[1] or t[1] == '' then return {} end
local stop = ARGV[2] == '-' and tonumber(t[3]) or tonumber(ARGV[2])
local out = { t[1], t[2], '' }
local start, bytes = stop, 0
while start > 0 and stop - start < tonumber(ARGV[3]) and bytes < tonumber(ARGV[4]) do
  start = start - 1
  local record = call('HGET', P .. 'e:' .. k, start)
  bytes = bytes + #record
  table.insert(out, record)
end
out[3] = tostring(start)
return out
`)

/** Archived, offset, limit. Gives ids of threads. */
export const names = script(`
return call('ZRANGE', P .. 'listed:' .. ARGV[1], ARGV[2], ARGV[2] + ARGV[3] - 1)
`)

/** Gives the place that the threads were moved to. */
export const moved = script("return call('GET', P .. 'moved') or ''")

/** A place. An earlier mark stays. */
export const close = script(`
call('SET', P .. 'moved', ARGV[1], 'NX')
return call('GET', P .. 'moved')
`)

export const reopen = script("return call('DEL', P .. 'moved')")

/** Score, name, limit. Gives names and open requests. */
export const waiting = script(`${behind}
local out = {}
for _, found in ipairs(behind(P .. 'waits:0', ARGV[1], ARGV[2], tonumber(ARGV[3]))) do
  table.insert(out, found[1])
  table.insert(out, call('HGET', P .. 'asks', found[1]))
end
return out
`)

/** Id of a thread. Gives names and open requests. */
export const waitsOf = script(`
local out, k = {}, keyOf(ARGV[1])
if not k or call('HGET', thread(k), 'archived') == '1' then return out end
for _, one in ipairs(call('SMEMBERS', P .. 'w:' .. k)) do
  table.insert(out, one)
  table.insert(out, call('HGET', P .. 'asks', one))
end
return out
`)

/** Id of a request. Gives its name and the request. */
export const waitingFor = script(`
for _, one in ipairs(call('ZRANGEBYLEX', P .. 'asked', '[' .. ARGV[1] .. '\\n', '(' .. ARGV[1] .. '\\v')) do
  if call('ZSCORE', P .. 'waits:0', one) then return { one, call('HGET', P .. 'asks', one) } end
end
return {}
`)

/** Limit. Gives the next number, then ids and leaves; nothing after the last thread. */
export const unindexed = script(`
local upto = call('GET', P .. 'waits:upto') or '1'
if upto == 'done' then return {} end
local last = tonumber(call('GET', P .. 'next') or '0')
if tonumber(upto) > last then
  call('SET', P .. 'waits:upto', 'done')
  return {}
end
local stop = math.min(last, tonumber(upto) + tonumber(ARGV[1]) - 1)
local out = { tostring(stop + 1) }
for k = tonumber(upto), stop do
  local t = call('HMGET', thread(k), 'id', 'leaf')
  if t[1] and t[1] ~= '' and t[2] ~= '-' then
    table.insert(out, t[1])
    table.insert(out, t[2])
  end
end
return out
`)

/** The next number, then ids, leaves and waits. */
export const index = script(`
for i = 2, #ARGV, 3 do
  local k = keyOf(ARGV[i])
  local t = k and call('HMGET', thread(k), 'leaf', 'archived')
  if t and t[1] == ARGV[i + 1] then wait(k, ARGV[i], t[2], ARGV[i + 2]) end
end
local upto = call('GET', P .. 'waits:upto') or '1'
if upto ~= 'done' and tonumber(upto) < tonumber(ARGV[1]) then call('SET', P .. 'waits:upto', ARGV[1]) end
return 1
`)
