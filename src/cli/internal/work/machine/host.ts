/** The machine of an agent: the folders that its file tools may use, and the shell of its commands. */
import { lstatSync } from "node:fs"
import { homedir } from "node:os"
import { basename, isAbsolute, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as CommandLine from "effect/process/CommandLine"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as HostFiles from "../../../../backends/HostFiles.ts"
import * as HostShell from "../../../../backends/HostShell.ts"
import * as OsSandbox from "../../../../backends/OsSandbox.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import * as Sandbox from "../../../../core/Sandbox.ts"
import * as Assets from "../../assets.ts"
import { freeze, frozenAt, type Tree } from "../../config/frozen.ts"
import { itemsOf, type Project, skillFolders } from "../../config/items.ts"
import type { SessionMemory } from "../../config/memory.ts"
import type { Places } from "../../config/places.ts"
import type { Settings } from "../../config/settings.ts"
import { fail, layerOrFail } from "../../failure.ts"
import { skillsOf } from "../../project/brought.ts"
import { Enclosure } from "./enclosure.ts"
import { hideFiles } from "./hiding.ts"
import type { Isolation } from "./isolated.ts"
import { openSandbox } from "./sandboxed.ts"

type Folder = HostFiles.Folder

/** The folders that were added to the working folder. A chat adds more while it runs. */
export interface Folders {
  readonly list: () => ReadonlyArray<Folder>
  readonly add: (folder: Folder) => void
}

export const makeFolders = (first: ReadonlyArray<Folder>): Folders => {
  let folders = first
  return {
    list: () => folders,
    add: (folder) => {
      folders = [...folders.filter(({ path }) => path !== folder.path), folder]
    }
  }
}

const suffix = /:(read|write)$/

/** Reads a folder as flags and settings write it: `../shared`, to be read, or `../shared:write`. Fails for a missing folder. */
export const readFolder = Effect.fnUntraced(function* (text: string, cwd: string, origin: string) {
  const fs = yield* FileSystem.FileSystem
  const folderText = text.replace(suffix, "").replace(/^~(?=\/|$)/, homedir())
  const access = suffix.exec(text)?.[1] === "write" ? "write" : "read"
  const path = resolve(cwd, folderText)
  const isFolder = yield* Effect.orElseSucceed(
    Effect.map(fs.stat(path), ({ type }) => type === "Directory"),
    () => false
  )
  if (folderText === "" || !isFolder)
    return yield* fail("usage", `${origin}: there is no folder ${JSON.stringify(path)}`)
  return { path: yield* Effect.orElseSucceed(fs.realPath(path), () => path), access } satisfies Folder
})

/** Tells why nothing may be written to the memory now, for the model; `undefined` if something may be. */
export type Guard = () => string | undefined

const unguarded: Guard = () => "memory can't be changed here"

/** The folder of the files that a thread leaves: large results, old conversations, output of processes. */
const scratchOf = ({ data }: Places, threadId: string): string => join(data, "threads", threadId, "files")

/** The folder of the processes that a thread has in the background. */
export const processesOf = (places: Places, threadId: string): string => join(scratchOf(places, threadId), "processes")

/** The parts of an agent's machine. */
interface Setup {
  readonly places: Places
  readonly settings: Settings
  readonly project: Project
  readonly memory: SessionMemory
  readonly memoryGuard?: Guard | undefined
  readonly folders: Folders
  readonly isolation: Isolation
}

/** The folders of skills of the program and the user. */
export const ownSkills = (setup: Pick<Setup, "places" | "settings">) =>
  Effect.map(skillsOf(setup), (found) => [Assets.skills, ...found.map(({ folder }) => folder)])

/** The trusted skills of a project. */
const skillTrees = (project: Project): ReadonlyArray<Tree> =>
  itemsOf(project, "skill").map(({ file, files = new Map() }) => ({ path: file, files }))

/** The folders of the copies of skills: of the memory, and of the project. */
export const copiedSkills = ({
  memory,
  places,
  project
}: Pick<Setup, "memory" | "places" | "project">): ReadonlyArray<string> => {
  const trees = skillTrees(project)
  return [
    frozenAt(places, memory.skills),
    ...(trees.length === 0 ? [] : skillFolders(project).map((folder) => join(frozenAt(places, trees), folder)))
  ]
}

/** The folders that the program keeps for its agents. Policies are about files of the project. */
export const ownFolders = (setup: Pick<Setup, "memory" | "places" | "settings">) =>
  Effect.map(ownSkills(setup), (skills): ReadonlyArray<string> => [
    setup.memory.notes,
    join(setup.places.data, "threads"),
    join(setup.places.data, "frozen"),
    ...skills
  ])

/** Tells the model the steps by which a person opens a path. */
export const advise = ({ access, isReadable, path }: HostFiles.Refused): string => {
  const folder = isReadable || path === "/" ? path : path.slice(0, path.lastIndexOf("/")) || "/"
  const more = access === "write" ? `${folder}:write` : folder
  const quoted = Result.getOrElse(CommandLine.join([more]), () => more)
  return `The user can add the folder: /add-dir ${more} in a chat, --add-dir ${quoted}, or the setting folders.`
}

/** Shells that read a command line as POSIX says. Zsh stops at patterns that match nothing, so only a setting chooses it. */
const posixShells: ReadonlySet<string> = new Set(["bash", "sh", "dash", "ash", "ksh", "mksh"])

const bashPlaces = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"]

/** Finds the shell of commands: of the settings, of the user if it is a POSIX shell, Bash, or `/bin/sh`. */
export const findShell = Effect.fnUntraced(function* (settings: Settings) {
  const fs = yield* FileSystem.FileSystem
  const isThere = (path: string) => Effect.orElseSucceed(fs.exists(path), () => false)
  const shell = settings.shell?.value.program
  if (shell !== undefined) {
    const isKnown = posixShells.has(basename(shell)) || basename(shell) === "zsh"
    if (!isKnown || !isAbsolute(shell) || !(yield* isThere(shell))) {
      return yield* fail(
        "usage",
        `shell: ${JSON.stringify(shell)} is no POSIX shell of this machine; give the path of one, such as /bin/bash`
      )
    }
    return shell
  }
  const own = process.env["SHELL"] ?? ""
  const wanted = isAbsolute(own) && posixShells.has(basename(own)) ? [own, ...bashPlaces] : bashPlaces
  return (yield* Effect.filter(wanted, isThere))[0] ?? "/bin/sh"
})

const isFolder = (path: string): boolean =>
  Result.getOrElse(
    Result.try(() => lstatSync(path).isDirectory()),
    () => false
  )

/** Stops the retries of package managers, which take minutes without a network. */
const withoutRetries = { npm_config_fetch_retries: "0", PIP_RETRIES: "0", CARGO_NET_RETRY: "0" }

/**
 * The folders of commands that nobody approved. They only read the repositories, so that no git of the person runs a program
 * of theirs, and the files that the agent keeps: tools outside read those.
 */
const enclosedFolders = (
  { cwd, scratch }: HostShell.Options,
  getFolders: Effect.Effect<ReadonlyArray<Folder>>,
  notes: string
): Effect.Effect<ReadonlyArray<Folder>> => {
  let before: ReadonlyArray<Folder> = []
  return Effect.map(getFolders, (folders) => {
    const all = folders.map((folder): Folder => (folder.path === notes ? { path: notes, access: "read" } : folder))
    const writable = [cwd, ...all.flatMap(({ access, path }) => (access === "write" ? [path] : []))]
    const repositories = writable.map((path) => join(path, ".git")).filter(isFolder)
    const readable = [...repositories, ...(scratch === undefined ? [] : [scratch])]
    const now = [...all, ...readable.map((path): Folder => ({ path, access: "read" }))]
    // The same list says that nothing changed.
    if (JSON.stringify(now) !== JSON.stringify(before)) before = now
    return before
  })
}

/** Opens the sandbox of a session once, when a command needs it. It stays as long as the session. */
const openOnce = Effect.fnUntraced(function* (
  open: Effect.Effect<Sandbox.Service, BackendError, Scope.Scope>,
  isolation: Isolation
) {
  const opening = Effect.andThen(Effect.sync(isolation.begin), open)
  // A command that is interrupted leaves no half of a sandbox behind.
  return yield* Effect.cached(Effect.uninterruptible(Scope.provide(opening, yield* Effect.scope)))
})

/** Makes the files and commands of a thread. Without a thread, its files are temporary. `hidden` are globs of files that nobody may read. */
export const machine = (setup: Setup, threadId: string | undefined, hidden: ReadonlyArray<string> = []) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { folders, isolation, memory, memoryGuard = unguarded, places, project, settings } = setup
      const { notes } = memory
      const trees = skillTrees(project)
      const copies = [
        yield* freeze(places, memory.skills),
        ...(trees.length === 0 ? [] : [yield* freeze(places, trees)])
      ]
      const readFolders = [...(yield* ownSkills(setup)), ...copies].map((path) => ({ path, access: "read" }) as const)
      let lastAdded: ReadonlyArray<Folder> | undefined
      let wasOpen = false
      let all: ReadonlyArray<Folder> = []
      const getFolders = Effect.sync(() => {
        const added = folders.list()
        const isOpen = memoryGuard() === undefined
        if (added !== lastAdded || isOpen !== wasOpen) {
          lastAdded = added
          wasOpen = isOpen
          all = [...readFolders, ...added, { path: notes, access: isOpen ? "write" : "read" }]
        }
        return all
      })
      const options: HostShell.Options = {
        cwd: places.project,
        folders: getFolders,
        shell: yield* findShell(settings),
        env: { inherit: "all", ...settings.shell?.value.env },
        scratch: threadId === undefined ? undefined : scratchOf(places, threadId),
        advise: (refused) => (refused.path.startsWith(`${notes}/`) ? memoryGuard() : advise(refused))
      }
      const machineLayer = Sandbox.layer(
        Effect.flatMap(openSandbox(settings, options) ?? HostShell.make(options), (shell) => hideFiles(shell, hidden))
      )
      const enclosed = {
        ...options,
        env: { ...options.env, set: { ...withoutRetries, ...options.env?.set } },
        scratch: undefined,
        folders: enclosedFolders(options, getFolders, notes)
      }
      const enclosure = Layer.effect(Enclosure, openOnce(OsSandbox.makeHost(enclosed), isolation))
      return Layer.merge(layerOrFail("failed")(machineLayer), enclosure)
    })
  )
