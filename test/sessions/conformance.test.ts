import { describe, it, layer } from "@effect/vitest"
import { SessionConformance } from "effect-deepagents/testing/conformance"
import { isFull } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import * as places from "./places.ts"

/** The checks of a store on a server, of which a short run has some. */
const checksOf = <P, E, R>(subject: SessionConformance.Subject<P, E, R>) =>
  SessionConformance.suite(subject).filter((_, index) => isFull || index % 4 === 0)

const hold = <P, E>(name: string, subject: SessionConformance.Subject<P, E, never>) =>
  describe(name, () => {
    for (const check of SessionConformance.suite(subject)) {
      // What comes of a long thread is seen in memory.
      if (!isFull && name !== "MemorySessions" && check.name.includes("10,000 entries")) continue
      const test = check.absent === undefined ? it.live : it.live.skip
      test(check.name, () => check.run, 60_000)
    }
  })

hold("MemorySessions", places.memory)
hold("SqliteSessions", places.sqlite)
if (isFull) hold("SqlSessions on another client of SQLite", places.foreignSqlite)
hold("JsonlSessions", places.jsonl)

describe("SqliteSessions on a small disk", () => {
  for (const check of SessionConformance.suite(places.sqliteOnSmallDisk)) {
    if (check.name.includes("full disk")) it.live(check.name, () => check.run, 60_000)
  }
})

const servers = { timeout: 60_000, excludeTestServices: true }

layer(places.Postgres.layer, servers)("SqlSessions on Postgres", (it) => {
  for (const check of checksOf(places.postgres)) {
    const test = check.absent === undefined ? it.effect : it.effect.skip
    test(check.name, () => check.run, 60_000)
  }

  for (const check of SessionConformance.suite(places.postgresOnSmallDisk)) {
    if (!check.name.includes("full disk")) continue
    if (places.noSmallDisk === undefined) it.effect(check.name, () => check.run, 60_000)
    else it.effect.skip(`${check.name}: ${places.noSmallDisk}`, () => check.run)
  }
})

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, servers)("RedisSessions", (it) => {
    for (const check of checksOf(places.redis)) {
      const test = check.absent === undefined ? it.effect : it.effect.skip
      test(check.name, () => check.run, 60_000)
    }
  })
})
