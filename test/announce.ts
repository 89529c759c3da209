import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { isFull } from "./scale.ts"
import * as Docker from "./servers/docker.ts"
import * as Redis from "./servers/redis.ts"

declare module "vitest" {
  interface ProvidedContext {
    /** A folder for the shared files of one run. It is removed at the end. */
    readonly sharedFolder: string
  }
}

let sharedFolder: string | undefined

/** Says once, before the tests, how much of them runs, and makes the folder that they share. */
export const setup = (project: TestProject): void => {
  sharedFolder = mkdtempSync(join(tmpdir(), "effect-deepagents-tests-"))
  project.provide("sharedFolder", sharedFolder)
  // For servers, which examples and checks start outside of tests, too.
  process.env["TEST_FOLDER"] = sharedFolder
  const what = isFull ? "all of them" : "an eighth; TEST_SCALE=full runs all of them"
  process.stdout.write(`Properties, and conformance suites that start processes: ${what}.\n`)
  const missing = [...(Redis.hasRedis ? [] : [Redis.howToInstall]), ...(Docker.hasDocker ? [] : [Docker.howToInstall])]
  if (isFull && missing.length > 0) throw new Error(missing.join("\n"))
  for (const one of missing) process.stdout.write(`${one} They are left out now.\n`)
}

export const teardown = (): void => {
  if (sharedFolder !== undefined) rmSync(sharedFolder, { recursive: true, force: true })
}
