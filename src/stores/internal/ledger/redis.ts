/** The tables of a ledger in Redis. Every change is one Lua script. */
import * as Effect from "effect/Effect"
import type { Redis } from "effect/persistence/Redis"
import { runnerOf, scriptsWith } from "../../../support/store/redis.ts"
import { add, type Entry, keptFor, none, openFor, type Place, type Row, settlesFor, type Tables } from "./tables.ts"

/**
 * All keys begin with `KEYS[1]`, and a place is a period, a line break and an account:
 *
 * - `s:<place>`: the four sums
 * - `o:<place>`: open reservations by id, each four amounts and its time of expiry
 * - `marks`: marks by name
 *
 * Times are those of the server.
 */
const shared = `
local P = KEYS[1]
local call = redis.call
local clock = call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
`

const script = scriptsWith(shared)

/** Takes an id; then for each entry its place, its life time, four amounts, and the four highest sums. */
const take = script(`
local n = (#ARGV - 1) / 10
for e = 0, n - 1 do
  local at = 2 + e * 10
  local sums = call('HMGET', P .. 's:' .. ARGV[at], '0', '1', '2', '3')
  for k = 1, 4 do
    local most = ARGV[at + 5 + k]
    if most ~= '' and tonumber(sums[k] or '0') > tonumber(most) then return e end
  end
end
for e = 0, n - 1 do
  local at = 2 + e * 10
  local place, lasts = ARGV[at], ARGV[at + 1]
  for k = 1, 4 do call('HINCRBY', P .. 's:' .. place, tostring(k - 1), ARGV[at + 1 + k]) end
  local open = table.concat({ ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5], string.format('%d', now + ${openFor}) }, ' ')
  call('HSET', P .. 'o:' .. place, ARGV[1], open)
  if lasts ~= '' and call('PTTL', P .. 's:' .. place) < 0 then call('PEXPIRE', P .. 's:' .. place, lasts) end
  if lasts ~= '' then call('PEXPIRE', P .. 'o:' .. place, lasts) end
end
return -1
`)

/** Takes an id, the four changes, then the places. */
const settle = script(`
for i = 6, #ARGV do
  if call('HDEL', P .. 'o:' .. ARGV[i], ARGV[1]) == 1 and call('EXISTS', P .. 's:' .. ARGV[i]) == 1 then
    for k = 1, 4 do call('HINCRBY', P .. 's:' .. ARGV[i], tostring(k - 1), ARGV[k + 1]) end
  end
end
return 1
`)

/** Takes a place. Gives the four sums, then the open reservations. */
const read = script(`
local result = {}
local sums = call('HMGET', P .. 's:' .. ARGV[1], '0', '1', '2', '3')
for k = 1, 4 do result[k] = sums[k] or '0' end
local open = call('HGETALL', P .. 'o:' .. ARGV[1])
for i = 1, #open, 2 do
  local ends = tonumber(string.match(open[i + 1], '(%d+)$'))
  if ends + ${settlesFor} < now then call('HDEL', P .. 'o:' .. ARGV[1], open[i])
  elseif ends > now then result[#result + 1] = open[i + 1] end
end
return result
`)

/** Takes a name. */
const mark = script("return call('HGET', P .. 'marks', ARGV[1]) or '0'")

/** Takes a name and a value. */
const raise = script(`
if tonumber(call('HGET', P .. 'marks', ARGV[1]) or '0') >= tonumber(ARGV[2]) then return 0 end
call('HSET', P .. 'marks', ARGV[1], ARGV[2])
return 1
`)

const placeOf = ({ account, period }: Place): string => `${period}\n${account}`

/** Writes whole numbers as digits: Redis reads no exponents. */
const digits = (amount: number): string => BigInt(amount).toString()

const toArgs = (entry: Entry): ReadonlyArray<string> => [
  placeOf(entry),
  entry.lasts === undefined ? "" : digits(Math.ceil(entry.lasts) + keptFor),
  ...entry.add.map(digits),
  ...entry.most.map((highest) => (highest === undefined ? "" : digits(highest)))
]

const toRow = (texts: ReadonlyArray<unknown>): Row => {
  const at = (index: number): number => Number(texts[index] ?? 0)
  return [at(0), at(1), at(2), at(3)]
}

const listOf = (reply: unknown): ReadonlyArray<unknown> => (Array.isArray(reply) ? reply : [])

/** Makes the tables under a prefix. */
export const make = (redis: Redis["Service"], prefix: string): Tables => {
  const run = runnerOf(redis, prefix)

  return {
    take: (id, entries) =>
      Effect.map(run(take, id, ...entries.flatMap(toArgs)), (index) => (Number(index) < 0 ? undefined : Number(index))),
    settle: (id, places, change) => Effect.asVoid(run(settle, id, ...change.map(digits), ...places.map(placeOf))),
    read: (place) =>
      Effect.map(run(read, placeOf(place)), (reply) => {
        const [a, b, c, d, ...open] = listOf(reply)
        const rows = open.map((text) => toRow(String(text).split(" ")))
        return {
          total: toRow([a, b, c, d]),
          reserved: rows.reduce<Row>((sum, row) => add(sum, row), none)
        }
      }),
    mark: (name) => Effect.map(run(mark, name), Number),
    raise: (name, value) => Effect.map(run(raise, name, digits(value)), (reply) => reply === 1)
  }
}
