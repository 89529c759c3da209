/**
 * The resources of servers as readable files under `/server/…`. Mount them into an agent's files.
 *
 * ```ts
 * import { CompositeBackend, MemoryBackend } from "effect-deepagents/backends"
 * import { McpBackend } from "effect-deepagents/mcp"
 *
 * const files = CompositeBackend.layer({ default: MemoryBackend.layer(), routes: { "/mcp/": McpBackend.layer } })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as CustomBackend from "../backends/CustomBackend.ts"
import * as Backend from "../core/Backend.ts"
import * as BackendError from "../core/BackendError.ts"
import * as Taint from "../middleware/Taint.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { decodePart } from "../support/text/percent.ts"
import { cut } from "../support/text/text.ts"
import type { ResourceContent } from "./internal/model.ts"
import { McpServers, type Resource, type Service } from "./McpServers.ts"

/** A part of a path, without separators and names such as `..`. */
const partOf = (text: string): string => {
  const plain = decodePart(text)
    .replaceAll(/[^\p{L}\p{N}._ @+-]/gu, "_")
    .replaceAll(/^\.+$/gu, "_")
  return cut(plain, 100, "")
}

/** `demo://resource/a/b.md` is `demo/resource/a/b.md`. */
const pathOf = ({ server, uri }: Resource): string => {
  const parts = uri
    .replace(/^([A-Za-z][\w+.-]*):\/*/u, "$1/")
    .split(/[/?#]/u)
    .filter((part) => part !== "")
    .map(partOf)
  return `/${[partOf(server), ...parts].join("/")}`
}

interface Files {
  readonly files: ReadonlyMap<string, Resource>
  readonly folders: ReadonlyMap<string, ReadonlyMap<string, "file" | "directory">>
}

const parentsOf = (path: string): ReadonlyArray<string> =>
  path
    .split("/")
    .slice(1, -1)
    .map((_, index, parts) => `/${parts.slice(0, index + 1).join("/")}`)

/** Gives each resource a path of its own. One at whose place there is another, or a folder, gets a mark. */
const filesOf = (resources: ReadonlyArray<Resource>): Files => {
  const paths = resources
    .filter(({ isTemplate }) => !isTemplate)
    .map((resource) => ({ resource, path: pathOf(resource) }))
  const folderPaths = new Set(paths.flatMap(({ path }) => parentsOf(path)))
  const files = new Map<string, Resource>()
  for (const { path, resource } of paths) {
    const isFree = !folderPaths.has(path) && !files.has(path)
    const mark = sha256Sync(JSON.stringify([resource.server, resource.uri])).slice(0, 8)
    files.set(isFree ? path : `${path}~${mark}`, resource)
  }
  const folders = new Map<string, Map<string, "file" | "directory">>([["/", new Map()]])
  for (const path of files.keys()) {
    let folder = "/"
    for (const parent of parentsOf(path)) {
      folders.get(folder)?.set(parent.slice(parent.lastIndexOf("/") + 1), "directory")
      if (!folders.has(parent)) folders.set(parent, new Map())
      folder = parent
    }
    folders.get(folder)?.set(path.slice(path.lastIndexOf("/") + 1), "file")
  }
  return { files, folders }
}

const textOf = (contents: ReadonlyArray<ResourceContent>): string | Uint8Array => {
  const [first] = contents
  if (first === undefined) return ""
  if ("base64" in first) return Result.getOrElse(Base64.decode(first.base64), () => new Uint8Array())
  return contents.flatMap((content) => ("text" in content ? [content.text] : [])).join("\n")
}

const refuse = (path: string) => Effect.fail(BackendError.make("write", path, { _tag: "Unsupported" }))

/**
 * Makes the backend. Templates have no file; the tool `read_mcp_resource` reads them. Each read asks the server. The
 * list of files is requested again after the server reports a change. Nothing can be written. A run that reads a file,
 * or the names of files, is marked with outside text (`Taint`).
 */
export const make = (servers: Service): Backend.Service => {
  let last: { readonly of: ReadonlyArray<Resource>; readonly files: Files } | undefined
  const listed = Effect.map(
    Effect.catch(servers.resources(), (): Effect.Effect<ReadonlyArray<Resource>> => Effect.succeed([])),
    (of) => {
      const isSame = last !== undefined && last.of.length === of.length && of.every((one, at) => one === last?.of[at])
      if (!isSame || last === undefined) last = { of, files: filesOf(of) }
      return last.files
    }
  )
  return CustomBackend.make({
    stat: (path) =>
      Effect.map(listed, ({ files, folders }) => {
        const resource = files.get(path)
        if (resource !== undefined) return { kind: "file" }
        return folders.has(path) ? { kind: "directory" } : undefined
      }),
    list: (path) =>
      Effect.flatMap(listed, ({ folders }) => {
        const entries = [...(folders.get(path) ?? [])].map(([name, kind]) => ({ name, kind }))
        // We name the servers, but a server names its resources.
        return path === "/" || entries.length === 0 ? Effect.succeed(entries) : Effect.as(Taint.bringIn(path), entries)
      }),
    read: (path) =>
      Effect.gen(function* () {
        const { files } = yield* listed
        const resource = files.get(path)
        if (resource === undefined) return yield* BackendError.make("read", path, { _tag: "NotFound" })
        yield* Taint.bringIn(path)
        const contents = yield* Effect.mapError(servers.read(resource.server, resource.uri), (cause) =>
          BackendError.make("read", path, { _tag: "Unavailable" }, { detail: cause.message, cause })
        )
        return textOf(contents)
      }),
    write: refuse,
    remove: refuse,
    rename: refuse
  })
}

/** The layer of {@link make}. */
export const layer: Layer.Layer<Backend.Backend, never, McpServers> = Backend.layer(Effect.map(McpServers, make))
