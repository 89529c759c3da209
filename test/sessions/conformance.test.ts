import { describe, it } from "@effect/vitest"
import { SessionConformance } from "effect-deepagents/testing"
import * as places from "./places.ts"

const hold = <P, E>(name: string, subject: SessionConformance.Subject<P, E, never>) =>
  describe(name, () => {
    for (const check of SessionConformance.suite(subject)) {
      const test = check.absent === undefined ? it.live : it.live.skip
      test(check.name, () => check.run, 60_000)
    }
  })

hold("MemorySessions", places.memory)
hold("SqliteSessions", places.sqlite)
hold("JsonlSessions", places.jsonl)

describe("SqliteSessions on a small disk", () => {
  for (const check of SessionConformance.suite(places.sqliteOnSmallDisk)) {
    if (check.name.includes("full disk")) it.live(check.name, () => check.run, 60_000)
  }
})
