/** Policy files of the organisation, the user and a trusted project. The strictest rule holds. */
import { homedir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { Tool } from "../../../core/Tool.ts"
import type * as Network from "../../../net/Network.ts"
import type * as Policy from "../../../rules/Policy.ts"
import { fail, type Failure, orFail } from "../failure.ts"
import { itemsOf, type Project } from "./items.ts"
import { type Places, textOf } from "./places.ts"

type PolicyFrom = "organisation" | "user" | "project"

interface PolicyFile {
  readonly from: PolicyFrom
  readonly file: string
  /** The content that is trusted. Without it, the file is read. */
  readonly text?: string | undefined
}

/** A policy with its file. */
export interface FoundPolicy extends Pick<PolicyFile, "file" | "from"> {
  readonly policy: Policy.Policy
}

/** The policy of an organisation, in a folder that only administrators write. */
const organisation = "/etc/deepagents/policy.yaml"

export const policyFiles = ({ config, project: folder }: Places, project: Project): ReadonlyArray<PolicyFile> => [
  { from: "organisation", file: organisation },
  { from: "user", file: join(config, "policy.yaml") },
  ...itemsOf(project, "policy").map(({ file, text }) => ({ from: "project", file: join(folder, file), text }) as const)
]

const readOne = Effect.fnUntraced(function* ({ file, from, text: trusted }: PolicyFile) {
  const text = trusted ?? (yield* textOf(file))
  if (text === undefined) return []
  // Most users have no policy, so the module loads late.
  const { fromYaml } = yield* Effect.promise(() => import("../../../rules/Policy.ts"))
  const policy = yield* orFail("usage", `${file}: `)(fromYaml(text))
  // A person reads the policy's name when asked, so the program sets it. No policy loosens another.
  return [{ from, file, policy: { ...policy, name: from, strict: true } } satisfies FoundPolicy]
})

/** Reads the existing policy files. A mistake fails with a suggestion. */
export const readPolicies = (
  files: ReadonlyArray<PolicyFile>
): Effect.Effect<ReadonlyArray<FoundPolicy>, Failure, FileSystem.FileSystem> =>
  Effect.map(Effect.forEach(files, readOne), (all) => all.flat())

/** The network rules for all agents: public addresses, at most so many bytes. Policies can only restrict them. */
export const network: Network.Rules = { maxBytes: 20_000_000 }

type FileRule = NonNullable<Policy.Policy["files"]>["rules"][number]

/** A path as a glob that means only this path. */
const escapeGlob = (path: string): string => path.replaceAll(/[*?[\]{},\\!]/g, "\\$&")

/**
 * A glob of a policy as a glob of the machine. In a policy `/` is the folder of the project, `//` the root of the machine,
 * and `~/` the home.
 */
export const onMachine =
  ({ project }: Pick<Places, "project">) =>
  (glob: string): string => {
    if (glob.startsWith("//")) return glob.slice(1)
    if (glob.startsWith("~/")) return escapeGlob(homedir()) + glob.slice(1)
    return glob.startsWith("/") ? escapeGlob(project) + glob : glob
  }

/** Files that the program keeps for an agent. Policies are about files of the project. */
const ownRule = (folders: ReadonlyArray<string>): FileRule => ({
  name: "the program's own files",
  operations: ["read", "write"],
  paths: folders.map((folder) => `${escapeGlob(folder)}/**`),
  ruling: "allow"
})

/** All tools that an agent of the program may have. */
type Tools = ReadonlyArray<Pick<Tool, "annotations" | "name">>

const nothingWritten: FileRule = { name: "sandbox: readOnly", operations: ["write"], paths: ["/**"], ruling: "refuse" }

const hasCommands = ({ sandbox }: Policy.Policy): boolean => sandbox !== "readOnly" && sandbox !== "noCommands"

const restricts = ({ files, sandbox }: Policy.Policy): boolean =>
  sandbox === "readOnly" ||
  files?.default === "refuse" ||
  files?.rules.some(({ ruling }) => ruling !== "allow") === true

/** Splits a policy into the parts that agents enforce. Commands go where none may run. */
const partsOf = (
  tools: Tools,
  { policy }: FoundPolicy,
  places: Places,
  own: FileRule
): ReadonlyArray<Policy.Policy> => {
  const commands = tools.flatMap(({ annotations, name }) => (annotations.runsCommands === true ? [name] : []))
  const { sandbox, ...rest } = policy
  const { files, off } = rest
  // The program adds rules of its own, so each rule keeps its place in the file as a name.
  const ownRules = (files?.rules ?? []).map((rule, place) => ({
    name: `files.rules[${place}]`,
    ...rule,
    paths: rule.paths.map(onMachine(places))
  }))
  const rules = [...(sandbox === "readOnly" ? [nothingWritten] : []), ...ownRules]
  const whole: Policy.Policy = {
    ...rest,
    ...(restricts(policy) ? { files: { ...files, rules: [own, ...rules] } } : {}),
    ...(hasCommands(policy)
      ? {}
      : { sandbox: "noCommands", off: { ...off, tools: [...(off?.tools ?? []), ...commands] } })
  }
  const askPolicy: Policy.Policy = {
    name: policy.name ?? "policy",
    strict: true,
    tools: { execute: { ruling: "ask", reason: "sandbox: askForCommands" } }
  }
  return sandbox === "askForCommands" ? [whole, askPolicy] : [whole]
}

/** Combines all policies. Returns `undefined` without any. */
export const compiled = Effect.fnUntraced(function* (
  found: ReadonlyArray<FoundPolicy>,
  tools: Tools,
  places: Places,
  folders: ReadonlyArray<string>
): Effect.fn.Return<Policy.CompiledPolicies | undefined, Failure> {
  if (found.length === 0) return undefined
  const around = found.find(({ policy }) => restricts(policy))
  if (around !== undefined && found.every(({ policy }) => hasCommands(policy))) {
    return yield* fail(
      "usage",
      `${around.file}: commands go around rules for files; have none run beside them (sandbox: noCommands)`
    )
  }
  const { compile } = yield* Effect.promise(() => import("../../../rules/Policy.ts"))
  return yield* orFail("usage")(
    Effect.fromResult(
      compile(
        [
          { name: "program", strict: true, network },
          ...found.flatMap((one) => partsOf(tools, one, places, ownRule(folders)))
        ],
        {
          known: tools.map(({ name }) => name)
        }
      )
    )
  )
})
