/** Files in memory with links among them, for tests of access through a link. */
import { Effect, Result } from "effect"
import { type Backend, BackendError } from "effect-deepagents"
import { CustomBackend } from "effect-deepagents/backends"

type Node = { readonly content: Uint8Array } | { readonly link: string }

const fail = (path: string, tag: "NotFound" | "OutsideRoot") => BackendError.make("test", path, { _tag: tag })

/** A backend with files by path, and links by path: absolute ones. */
export const withLinks = (files: Readonly<Record<string, string>>, links: Readonly<Record<string, string>>) => {
  const nodes = new Map<string, Node>()
  for (const [path, text] of Object.entries(files)) nodes.set(path, { content: new TextEncoder().encode(text) })
  for (const [path, link] of Object.entries(links)) nodes.set(path, { link })

  const isDirectory = (path: string) =>
    path === "/" || Array.from(nodes.keys()).some((other) => other.startsWith(`${path}/`))

  const resolve = (path: string, depth = 0): Result.Result<string, BackendError.BackendError> => {
    if (depth > 20) return Result.fail(fail(path, "OutsideRoot"))
    let real = ""
    const names = path.split("/").filter((name) => name !== "")
    for (const [index, name] of names.entries()) {
      const node = nodes.get(`${real}/${name}`)
      if (node !== undefined && "link" in node) {
        if (node.link.startsWith("/..")) return Result.fail(fail(path, "OutsideRoot"))
        return resolve(`${node.link}/${names.slice(index + 1).join("/")}`, depth + 1)
      }
      real += `/${name}`
    }
    return Result.succeed(real || "/")
  }

  const kindOf = (path: string): CustomBackend.Stat | undefined => {
    const node = nodes.get(path)
    if (node === undefined) return isDirectory(path) ? { kind: "directory", modifiedAt: 1 } : undefined
    if ("content" in node) return { kind: "file", size: node.content.length, modifiedAt: 1 }
    const target = resolve(path)
    const at = Result.isSuccess(target) ? kindOf(target.success) : undefined
    return { ...(at ?? { kind: "link" }), isLink: true }
  }

  const backend = CustomBackend.make({
    stat: (path) => Effect.sync(() => kindOf(path)),
    list: (path) =>
      Effect.sync(() => {
        const folder = path === "/" ? "/" : `${path}/`
        const below = Array.from(nodes.keys()).filter((other) => other.startsWith(folder))
        const names = new Set(below.map((other) => other.slice(folder.length).split("/")[0] ?? ""))
        return Array.from(names, (name) => ({ name, ...(kindOf(`${folder}${name}`) ?? { kind: "link" as const }) }))
      }),
    read: (path) =>
      Effect.suspend(() => {
        const node = nodes.get(path)
        return node !== undefined && "content" in node
          ? Effect.succeed(node.content)
          : Effect.fail(fail(path, "NotFound"))
      }),
    write: (path, content) =>
      Effect.sync(() => {
        nodes.set(path, { content: CustomBackend.toBytes(content) })
      }),
    remove: (path) => Effect.sync(() => void nodes.delete(path)),
    rename: (from, to) =>
      Effect.sync(() => {
        const node = nodes.get(from)
        nodes.delete(from)
        if (node !== undefined) nodes.set(to, node)
      }),
    resolve: (path) => Effect.fromResult(resolve(path))
  })
  const withPaths: Backend.Service = {
    ...backend,
    realPaths: (paths) => Effect.sync(() => paths.map((path) => Result.getOrUndefined(resolve(path))))
  }
  return {
    backend: withPaths,
    /** The stored files, links as they are. */
    stored: (): Readonly<Record<string, string>> =>
      Object.fromEntries(
        Array.from(nodes, ([path, node]) => [
          path,
          "link" in node ? `-> ${node.link}` : new TextDecoder().decode(node.content)
        ])
      ),
    /** Replaces a path by a link, behind the back of the backend. */
    relink: (path: string, link: string) => nodes.set(path, { link })
  }
}
