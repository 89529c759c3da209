/** The page of the server: the files that the package has in `dist/page`. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { Problem } from "./problem.ts"
import { openRoute, type Route } from "./route.ts"

/** The part of `node:fs` that reads the page. */
interface Files {
  readonly existsSync: (path: URL) => boolean
  readonly readdirSync: (path: URL) => ReadonlyArray<string>
  readonly readFileSync: (path: URL) => Uint8Array
}

/** The `process` of Node, Bun and Deno. */
declare const process: { readonly getBuiltinModule?: (name: "node:fs") => Files | undefined } | undefined

/** The folder of the page, from the sources and from modules of `dist`. */
const places: ReadonlyArray<string> = ["../../../../dist/page/", "../page/", "./page/", "../../page/", "../../../page/"]

const findFolder = (files: Files, directory: string | undefined): URL | undefined => {
  const folders =
    directory === undefined ? places.map((place) => new URL(place, import.meta.url)) : [new URL(`file://${directory}/`)]
  return folders.find((folder) => files.existsSync(new URL("index.html", folder)))
}

/** Reads the files of the page once. A request names one of them, and no path. */
const readPage = (directory: string | undefined): ReadonlyMap<string, Uint8Array> => {
  const files = typeof process === "undefined" ? undefined : process.getBuiltinModule?.("node:fs")
  const folder = files === undefined ? undefined : findFolder(files, directory)
  const bytesByName = new Map<string, Uint8Array>()
  if (files === undefined || folder === undefined) return bytesByName
  for (const name of files.readdirSync(folder)) {
    if (/^(?:index\.html|app-[\w-]+\.(?:js|css))$/.test(name))
      bytesByName.set(name, files.readFileSync(new URL(name, folder)))
  }
  return bytesByName
}

/** Nothing runs but the page's own script, and nothing leaves for other hosts. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob: data:",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'"
].join("; ")

const headers = {
  "content-security-policy": policy,
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
}

const typeOf = (name: string): string =>
  name.endsWith(".js") ? "text/javascript" : name.endsWith(".css") ? "text/css" : "text/html"

/** Makes the routes of the page. */
export const makePageRoutes = (directory: string | undefined): ReadonlyArray<Route> => {
  let pageFiles: ReadonlyMap<string, Uint8Array> | undefined
  const respond = (name: string) =>
    Effect.suspend(() => {
      pageFiles ??= readPage(directory)
      const bytes = pageFiles.get(name)
      if (bytes === undefined) {
        const detail = pageFiles.size === 0 ? "The page is not built; run npm run build." : "The page has no such file."
        return Effect.fail(new Problem({ status: 404, code: "NotFound", detail }))
      }
      const cache = name === "index.html" ? "no-store" : "public, max-age=31536000, immutable"
      return Effect.succeed(
        HttpServerResponse.uint8Array(bytes, {
          contentType: `${typeOf(name)}; charset=utf-8`,
          headers: { ...headers, "cache-control": cache }
        })
      )
    })
  return [
    openRoute({ method: "GET", path: "/", summary: "The page.", handle: () => respond("index.html") }),
    openRoute({
      method: "GET",
      path: "/:file(^app-[A-Za-z0-9_.-]+$)",
      summary: "A file of the page.",
      handle: ({ param }) => respond(param("file"))
    })
  ]
}
