/** Runs the commands of an agent in a sandbox of this machine, by the setting `sandbox`. */
import { execFile } from "node:child_process"
import { homedir } from "node:os"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as OsSandbox from "../../../../backends/OsSandbox.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import { oneLine, visible } from "../../../../support/text/untrusted.ts"
import { network } from "../../config/policies.ts"
import type { Settings } from "../../config/settings.ts"
import { fail } from "../../failure.ts"

/** The wishes of the setting; `undefined` if commands run with the rights of the person. */
const wishesOf = ({ sandbox }: Settings) => {
  const value = sandbox?.value ?? "off"
  if (value === "off") return undefined
  return value === "os" ? {} : value
}

/** Tells the model and the person the reach of commands. Empty without a sandbox. */
export const describeSandbox = (settings: Settings): string => {
  const wishes = wishesOf(settings)
  if (wishes === undefined) return ""
  const hosts = wishes.network ?? []
  return hosts.length === 0 ? "sandboxed, no network" : `sandboxed, network: ${visible(oneLine(hosts.join(", ")))}`
}

const ofHome = (path: string): string => resolve(path.replace(/^~(?=\/|$)/, homedir()))

/** Reads a setting of the person's own git. A home is not there for commands, and a commit needs a name. */
const readGit = (key: string): Effect.Effect<string> =>
  Effect.callback((done) => {
    execFile("git", ["config", "--global", "--get", key], { cwd: "/", timeout: 5000 }, (error, stdout) =>
      done(Effect.succeed(error === null ? stdout.trim() : ""))
    )
  })

const identity = Effect.gen(function* () {
  const [name, email] = yield* Effect.all([readGit("user.name"), readGit("user.email")])
  return {
    ...(name === "" ? {} : { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name }),
    ...(email === "" ? {} : { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email })
  }
})

/** The way to the named hosts; loaded when a run needs it. */
const openWay = (hosts: ReadonlyArray<string>): OsSandbox.Egress<never> => {
  const rules = { ...network, allow: hosts }
  return (listener) =>
    Effect.flatMap(
      Effect.promise(() =>
        Promise.all([
          import("../../../../net/NodeEgress.ts"),
          import("../../../../net/NodeNetwork.ts"),
          import("../../../../net/Secrets.ts")
        ])
      ),
      ([NodeEgress, NodeNetwork, Secrets]) =>
        Effect.flatMap(Layer.build(Layer.merge(NodeNetwork.layer(rules), Secrets.layer({}))), (context) =>
          Effect.provideContext(NodeEgress.start({ rules, listener }), context)
        )
    )
}

const off = 'Or set sandbox to "off": commands then run with your rights'

/** Tells the person why nothing isolates here, and what to do. */
const explain = Effect.fnUntraced(function* (error: BackendError) {
  const probed = yield* OsSandbox.probe
  return yield* probed.works
    ? Effect.fail(error)
    : fail("usage", `sandbox: commands can't be isolated here: ${probed.why}; ${probed.mend}. ${off}`)
})

/** Makes the files and commands of a sandbox; `undefined` if the settings want none. Fails where nothing isolates. */
export const openSandbox = (settings: Settings, options: OsSandbox.HostOptions) => {
  const wishes = wishesOf(settings)
  if (wishes === undefined) return undefined
  return Effect.gen(function* () {
    const hosts = wishes.network ?? []
    return yield* OsSandbox.makeHost({
      ...options,
      env: { ...options.env, set: { ...(yield* identity), ...options.env?.set } },
      readable: (wishes.readable ?? []).map(ofHome),
      writable: (wishes.writable ?? []).map(ofHome),
      egress: hosts.length === 0 ? undefined : openWay(hosts)
    }).pipe(Effect.catch(explain))
  })
}

/** Tells the person which commands run isolated where no setting says it. */
export const describeUnapproved = "auto-edit isolates commands"

/** Says in the doctor whether commands are isolated, and whether they could be. */
export const checkSandbox = Effect.fnUntraced(function* (settings: Settings) {
  const probed = yield* OsSandbox.probe
  const name = "isolation of commands"
  const description = describeSandbox(settings)
  if (description === "") {
    const detail = !probed.works
      ? `off, and not possible here: ${probed.why}`
      : settings.sandbox === undefined && process.platform === "linux"
        ? 'bubblewrap: in the mode auto-edit, commands that nobody approved reach the folder, and no network; the setting sandbox: "off" has them asked about, "os" isolates all commands'
        : 'off: commands run with your rights; the setting sandbox: "os" isolates them'
    return { area: "tools", name, status: "ok", detail } as const
  }
  return probed.works
    ? ({
        area: "tools",
        name,
        status: "ok",
        detail: `bubblewrap: ${description}; memory ${probed.memory ? "can be" : "can't be"} bounded here`
      } as const)
    : ({ area: "tools", name, status: "failure", detail: probed.why, advice: probed.mend } as const)
})
