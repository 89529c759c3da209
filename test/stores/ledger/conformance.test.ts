import { describe, it, layer } from "@effect/vitest"
import { LedgerConformance } from "effect-deepagents/testing/conformance"
import { hasRedis } from "../../servers/redis.ts"
import { Postgres, RedisServer } from "../../sessions/places.ts"
import * as places from "./places.ts"

const hold = <P, E>(name: string, subject: LedgerConformance.Subject<P, E, never>) =>
  describe(name, () => {
    for (const check of LedgerConformance.suite(subject)) {
      const test = check.absent === undefined ? it.live : it.live.skip
      test(check.name, () => check.run, 60_000)
    }
  })

hold("the ledger in memory", places.memory)
hold("the ledger on SQLite", places.sqlite)

const servers = { timeout: 60_000, excludeTestServices: true }

layer(Postgres.layer, servers)("the ledger on Postgres", (it) => {
  for (const check of LedgerConformance.suite(places.postgres)) it.effect(check.name, () => check.run, 60_000)
})

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(RedisServer.layer, servers)("the ledger on Redis", (it) => {
    for (const check of LedgerConformance.suite(places.redis)) it.effect(check.name, () => check.run, 60_000)
  })
})
