/** Policies as files: an organisation's, the user's, a trusted project's. The stricter of all holds. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as Policy from "../../policy/Policy.ts"
import { fail, type Failure, orFail } from "./failure.ts"
import type { Places } from "./places.ts"

type PolicyFrom = "organisation" | "user" | "project"

interface PolicyFile {
  readonly from: PolicyFrom
  readonly file: string
}

/** A policy, and the file that it is of. */
interface Found extends PolicyFile {
  readonly policy: Policy.Policy
}

/** The file of an organisation is where only those who administrate the machine write. */
const organisation = "/etc/deepagents/policy.yaml"

export const policyFiles = ({ config, project }: Places, isTrusted: boolean): ReadonlyArray<PolicyFile> => [
  { from: "organisation", file: organisation },
  { from: "user", file: join(config, "policy.yaml") },
  ...(isTrusted ? [{ from: "project", file: join(project, ".deepagents", "policy.yaml") } as const] : [])
]

/** Parts of a policy that the program can't hold to. One that it passed by would seem to guard. */
const beyond = ["files", "network", "sandbox"] as const

const readOne = Effect.fnUntraced(function* ({ file, from }: PolicyFile) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* Effect.catch(fs.readFileString(file), (error) =>
    error.reason._tag === "NotFound"
      ? Effect.succeed(undefined)
      : fail("usage", `${file} can't be read: ${error.message}`)
  )
  if (text === undefined) return []
  // Most have no policy, and do not wait until this is loaded.
  const { fromYaml } = yield* Effect.promise(() => import("../../policy/Policy.ts"))
  const read = yield* orFail("usage", `${file}: `)(fromYaml(text))
  const part = beyond.find((name) => read[name] !== undefined) ?? (read.off?.middleware && "off.middleware")
  if (part !== undefined) {
    return yield* fail(
      "usage",
      `${file}: the program takes no ${part}; it takes tools, servers, annotations, default, off.tools and budget. permissions of an agent's file are rules for files`
    )
  }
  // Its name is told to the person who is asked, so it is not the file that says it. None loosens another.
  return [{ from, file, policy: { ...read, name: from, strict: true } } satisfies Found]
})

/** Reads the files that are there; one with a mistake is refused, with what is near. */
export const readPolicies = (
  files: ReadonlyArray<PolicyFile>
): Effect.Effect<ReadonlyArray<Found>, Failure, FileSystem.FileSystem> =>
  Effect.map(Effect.forEach(files, readOne), (all) => all.flat())

/** All policies as middleware; nothing where there is none. `known` are names of tools that some agent may have. */
export const compiled = Effect.fnUntraced(function* (
  found: ReadonlyArray<Found>,
  known: ReadonlyArray<string>
): Effect.fn.Return<Policy.Compiled | undefined, Failure> {
  if (found.length === 0) return undefined
  const { compile } = yield* Effect.promise(() => import("../../policy/Policy.ts"))
  return yield* orFail("usage")(
    Effect.fromResult(
      compile(
        found.map(({ policy }) => policy),
        { known }
      )
    )
  )
})
