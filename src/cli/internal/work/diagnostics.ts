/** Diagnostics after edits, by the language servers that are installed on this machine. */
import { homedir } from "node:os"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as LspDiagnostics from "../../../workspace/LspDiagnostics.ts"
import type { Places } from "../config/places.ts"
import type { Settings } from "../config/settings.ts"
import { foldersOf } from "../project/folders.ts"
import type { Folders } from "./machine/host.ts"
import { installedBeside } from "./machine/programs.ts"

/** A language server. The first of its programs that is installed runs. */
interface LanguageServer extends Pick<LspDiagnostics.Options, "languages" | "settings"> {
  readonly programs: ReadonlyArray<LspDiagnostics.Options["command"]>
}

/**
 * The known servers. All of them read a project and run nothing of it: no plugin, no build script, no linter's
 * configuration that is a program.
 */
const knownServers: ReadonlyArray<LanguageServer> = [
  {
    ...LspDiagnostics.typescript,
    programs: [["tsgo", "--lsp", "--stdio"], LspDiagnostics.typescript.command]
  },
  {
    programs: [
      ["basedpyright-langserver", "--stdio"],
      ["pyright-langserver", "--stdio"],
      ["ruff", "server"]
    ],
    languages: { py: "python", pyi: "python" }
  },
  { programs: [["gopls"]], languages: { go: "go" } }
]

/** Variables that a server may need. It has no key and no secret. */
const variables =
  /^(?:HOME|USER|LOGNAME|LANG|LC_\w+|TMPDIR|TZ|XDG_\w+|GOPATH|GOROOT|GOMODCACHE|GOCACHE|NVM_DIR|VOLTA_HOME|ASDF_DIR|ASDF_DATA_DIR|MISE_DATA_DIR|PYENV_ROOT)$/

const environmentWith = (path: string): { readonly [name: string]: string } => ({
  ...Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && variables.test(name) ? [[name, value]] : []
    )
  ),
  PATH: path,
  // A project may name another version of Go, which would be downloaded and run, and modules at any address.
  GOTOOLCHAIN: "local",
  GOPROXY: "off",
  GONOPROXY: "none"
})

/** Requests in a row that a server may leave without an answer. */
const mostSilent = 3

/** Time after which a silent server is asked again, in milliseconds. */
const rest = 60_000

type Diagnose = LspDiagnostics.LanguageServer["Service"]["diagnose"]

/** Asks a server that is silent only from time to time, so that it does not delay each edit. */
export const sparing = (diagnose: Diagnose): Diagnose => {
  let silent = 0
  let askedAt = 0
  return Effect.fnUntraced(function* (path, text) {
    const now = yield* Clock.currentTimeMillis
    if (silent >= mostSilent && now - askedAt < rest) return undefined
    askedAt = now
    const problems = yield* diagnose(path, text)
    silent = problems === undefined ? silent + 1 : 0
    return problems
  })
}

const extensionOf = (path: string): string => path.slice(path.lastIndexOf(".") + 1).toLowerCase()

const own = ({ lsp }: Pick<Settings, "lsp">): ReadonlyArray<LanguageServer> =>
  typeof lsp?.value === "object"
    ? Object.values(lsp.value).map(({ command: [program, ...args], languages }) => ({
        programs: [[program, ...args]],
        languages
      }))
    : []

interface Around {
  readonly places: Places
  readonly settings: Settings
  readonly folders: Folders
}

const serversIn = ({ lsp }: Pick<Settings, "lsp">): ReadonlyArray<LanguageServer> =>
  lsp?.value === false ? [] : [...own({ lsp }), ...knownServers]

/** Reads which programs are installed. Programs in the folders of a session do not count. */
const readInstalled = Effect.fnUntraced(function* ({ folders, places }: Around) {
  const around = yield* foldersOf(places.project)
  return yield* installedBeside([places.project, ...around, ...folders.list().map(({ path }) => path)])
})

/** Lists the servers: their files, and their program if one is installed. */
export const listServers = Effect.fnUntraced(function* (around: Around) {
  const { find } = yield* readInstalled(around)
  return yield* Effect.forEach(serversIn(around.settings), ({ languages, programs }) =>
    Effect.gen(function* () {
      const files = yield* Effect.forEach(programs, ([name]) => find(name))
      return {
        extensions: Object.keys(languages),
        names: programs.map(([name]) => name),
        program: files.find((file) => file !== undefined)
      }
    })
  )
})

/** Makes the servers of a session. Each starts at the first edit of one of its files, and ends with the scope. */
export const languageServers = (context: Around): Layer.Layer<LspDiagnostics.LanguageServer, never, NodeServices> =>
  Layer.effect(
    LspDiagnostics.LanguageServer,
    Effect.gen(function* () {
      const { places, settings } = context
      const scope = yield* Effect.scope
      const services = yield* Effect.context<NodeServices>()
      const servers = serversIn(settings)
      const installed = yield* Effect.cached(Effect.provideContext(readInstalled(context), services))
      /** Prepares a server. `undefined` if none of its programs is installed. */
      const open = Effect.fnUntraced(function* ({ languages, programs, settings: asked }: LanguageServer) {
        const { find, path } = yield* installed
        for (const [name, ...args] of programs) {
          const program = yield* find(name)
          if (program === undefined) continue
          const layer = LspDiagnostics.layer({
            root: places.project,
            command: [program, ...args],
            languages,
            settings: asked,
            // Version managers read the folder in which a program starts.
            cwd: homedir(),
            env: environmentWith(path)
          })
          const layerContext = yield* Effect.provideContext(Layer.buildWithScope(layer, scope), services)
          return sparing(Context.get(layerContext, LspDiagnostics.LanguageServer).diagnose)
        }
        return undefined
      })
      const opened = yield* Effect.forEach(servers, (server) =>
        Effect.map(Effect.cached(open(server)), (diagnose) => ({ diagnose, languages: server.languages }))
      )
      return {
        diagnose: Effect.fnUntraced(function* (path, text) {
          const fitting = opened.filter(({ languages }) => Object.hasOwn(languages, extensionOf(path)))
          for (const { diagnose } of fitting) {
            const ask = yield* diagnose
            if (ask !== undefined) return yield* ask(path, text)
          }
          return undefined
        })
      }
    })
  )
