/** Checks paths: every operation rejects paths out of the root, and preserves odd names. */
import * as Effect from "effect/Effect"
import type { Service, Transfer } from "../../../../core/Backend.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import { fails, assert, expect } from "../assert.ts"
import { listFiles, bytesOf, putFiles, listPaths, pathsOf, readText, rule, type Rules, readWhole } from "./common.ts"
import { byteLength, comparePaths } from "./paths.ts"

const one = <A>(transfers: ReadonlyArray<Transfer<A>>): Effect.Effect<A, BackendError> => {
  const [first] = transfers
  if (first === undefined) return Effect.die(new Error("a transfer of one file gives one outcome"))
  return first.ok ? Effect.succeed(first.value) : Effect.fail(first.error)
}

/** All operations on a path. */
export const everyOperation = (
  backend: Service,
  path: string
): ReadonlyArray<readonly [operation: string, run: Effect.Effect<unknown, BackendError>]> => [
  ["ls", backend.ls(path)],
  ["read", backend.read(path)],
  ["write", backend.write(path, "written")],
  ["edit", backend.edit(path, [{ old: "a", new: "b" }])],
  ["delete", backend.delete(path, { recursive: true })],
  ["move", backend.move(path, "/elsewhere")],
  ["move", backend.move("/there.txt", path)],
  ["grep", backend.grep({ pattern: "a", path })],
  ["glob", backend.glob({ pattern: "**", path })],
  ["upload", Effect.flatMap(backend.upload([{ path, content: bytesOf("uploaded") }]), one)],
  ["download", Effect.flatMap(backend.download([path]), one)]
]

const checkRefusal = (paths: ReadonlyArray<string>, tag: "OutsideRoot" | "InvalidPath") =>
  Effect.fnUntraced(function* (backend: Service) {
    yield* putFiles(backend, { "/there.txt": "here" })
    for (const path of paths) {
      for (const [operation, run] of everyOperation(backend, path)) {
        yield* fails(run, `${operation} of ${JSON.stringify(path.slice(0, 60))}`, tag)
        const error = yield* Effect.flip(run).pipe(Effect.orDie)
        yield* expect(error.operation, operation, "an error names its operation")
        if (operation !== "move" && path.length < 1000)
          yield* expect(error.path, path, "an error has the path as it was given")
      }
    }
    yield* expect(yield* listFiles(backend), ["/there.txt"], "nothing was changed")
  })

const traversals = [
  "..", "../x", "/..", "/../x", "a/../../x", "/a/../x", "a/..", "/a/b/../..", "./../x", "//../x", "/a//../x",
  "/a/./../x", "../../../../../../../etc/passwd", "~", "~/x", "~root/x", "/~", "/~/x"
] // prettier-ignore

/** Tells whether a path leaves the root where `..` is folded. */
const leaves = (path: string): boolean => {
  let depth = 0
  for (const name of path.split("/")) {
    if (name === "..") depth--
    else if (name !== "" && name !== ".") depth++
    if (depth < 0 || name.startsWith("~")) return true
  }
  return false
}

const invalids = [
  "a\0b", "\0", "/x/\0/y", "C:/x", "c:", "Z:", "C:\\x", "..\\x", "\\", "/a\\..\\b", "\\\\host\\share", "a\ud800b",
  "\udc00", "x".repeat(256), `/d/${"é".repeat(128)}`, `${"x".repeat(300)}/y`, "/0123456789".repeat(400)
] // prettier-ignore

/** Names that break shells, patterns, templates, records, decoders or sort orders. */
const oddNames: ReadonlyArray<string> = [
  "new\nline", "\n", "carriage\rreturn", "tab\t", "a'b", 'a"b', "'", "`id`", "$(id)", "$HOME", "$&", "$$", "%s%n",
  "a:b", "12:34:text", "*", "?.txt", "[a]", "{a,b}", "!x", "#x", "(x)", "a|b", "a&b", "a;b", "<x>", " lead", "trail ",
  " ", "-", "-n", "--", "-rf", "--help", ".hidden", "...", "a..b", "a.", "x~", "%2e%2e", "%2F", "%00", "&amp;", "+",
  "\u0001", "\u007f", "\u2028", "\u202etxt", "é", "日本語", "\uff5e", "\u{1F600}", "\u{1F468}\u200D\u{1F469}",
  "__proto__", "constructor", "toString", "hasOwnProperty", "CON", "x".repeat(255), "é".repeat(127), "null", "0"
] // prettier-ignore

/** Names that only look like `..` or `/`. */
const lookalikes = [
  "%2e%2e", "%2E%2E", "%2e%2e%2f", "..%2f", "..%5c", "\uff0e\uff0e", "\u2025", "..\u200b", " ..", ".. ", "...",
  "\u2024\u2024", "..\n", "&#46;&#46;", "\uff0f", "\u2215", "\u29f5", "x..", "..x"
] // prettier-ignore

const inOrder = (paths: ReadonlyArray<string>): ReadonlyArray<string> => [...paths].sort(comparePaths)

const keepsNames = Effect.fnUntraced(function* (backend: Service) {
  const files = oddNames.map((name) => `/as files/${name}`)
  const inside = oddNames.map((name) => `/as folders/${name}/f`)
  yield* putFiles(backend, Object.fromEntries([...files, ...inside].map((path) => [path, `in ${path}\nneedle`])))

  const listed = yield* backend.ls("/as files")
  yield* expect(pathsOf(listed), inOrder(files), "ls gives the names as they are, in order")
  const folders = yield* backend.ls("/as folders")
  yield* expect(
    folders.entries.map(({ kind, path }) => [path, kind]),
    inOrder(oddNames.map((name) => `/as folders/${name}`)).map((path) => [path, "directory"]),
    "ls gives the folders as they are, in order"
  )
  yield* expect(yield* listFiles(backend), inOrder([...files, ...inside]), "glob gives the paths as they are, in order")
  const result = yield* backend.grep({ pattern: "needle", mode: "files" })
  yield* expect(
    result.files.map(({ path }) => path),
    inOrder([...files, ...inside]),
    "grep gives the paths as they are"
  )
  const lines = yield* backend.grep({ pattern: "needle", path: "/as files", mode: "content" })
  yield* expect(
    lines.files.map(({ matches, path }) => [path, matches.map(({ text }) => text)]),
    inOrder(files).map((path) => [path, ["needle"]]),
    "grep gives the lines of each"
  )
  const all = yield* backend.download([...files, ...inside])
  for (const download of all) {
    if (!download.ok) return yield* Effect.fail(download.error)
    yield* expect(
      new TextDecoder().decode(download.value),
      `in ${download.path}\nneedle`,
      `${download.path} has its own content`
    )
  }
})

/** Number of odd names in one path, since single checks would take too long. */
const perPath = 6

const worksOnNames = Effect.fnUntraced(function* (backend: Service) {
  for (let at = 0; at < oddNames.length; at += perPath) {
    const names = oddNames.slice(at, at + perPath)
    const [top = ""] = names
    const folder = `/${top}/${names.join("/")}`
    const path = `${folder}/${names.at(-1) ?? top}`
    const label = JSON.stringify(names.map((name) => name.slice(0, 20)))
    const result = yield* backend.write(path, "one\ntwo $&\n")
    yield* expect([result.path, result.created], [path, true], `write makes ${label}`)
    const edited = yield* backend.edit(path, [{ old: "two $&", new: `$& ${top}` }], { version: result.version })
    const text = `one\n$& ${top}\n`
    const file = yield* readText(backend, path)
    yield* expect(
      [file.path, file.version, file.size],
      [path, edited.version, byteLength(text)],
      `read gives what edit left at ${label}`
    )
    yield* backend.move(path, `${folder}/moved`)
    yield* expect(yield* readWhole(backend, `${folder}/moved`), text, `move keeps the text of ${label}`)
    const entries = yield* listPaths(backend, folder)
    yield* expect(entries, [`${folder}/moved`], `move leaves nothing at ${label}`)
    yield* backend.delete(top, { recursive: true })
    yield* fails(backend.ls(top), `ls of ${label} after it was deleted`, "NotFound")
  }
  yield* expect((yield* backend.ls("/")).entries, [], "all of it is gone")
})

const checkTraversals = (backend: Service) =>
  checkRefusal(backend.paths === undefined ? traversals : traversals.filter(leaves), "OutsideRoot")(backend)

/** Checks of paths. */
export const pathRules: Rules<Service> = [
  ["no operation leaves the root by .. or ~", checkTraversals],
  ["no operation takes a path that can't be meant", checkRefusal(invalids, "InvalidPath")],
  rule("what only looks like .. or / is a name", function* (backend) {
    const paths = lookalikes.map((name) => `/a/${name}/b`)
    yield* putFiles(backend, Object.fromEntries(paths.map((path) => [path, path])))
    yield* expect(yield* listFiles(backend), inOrder(paths), "each is where it was put")
    const names = yield* listPaths(backend, "/")
    yield* expect(names, ["/a"], "nothing is elsewhere")
    for (const path of paths) yield* expect(yield* readWhole(backend, path), path, "each has its own content")
  }),
  rule("a path has one spelling in results, whatever it was given as", function* (backend) {
    yield* putFiles(backend, { "/a/b.txt": "text" })
    for (const path of ["a/b.txt", "/a/b.txt", "//a///b.txt", "./a/./b.txt", "/a/b.txt/", "/a/b.txt/."]) {
      const file = yield* backend.read(path)
      yield* expect(file.path, "/a/b.txt", `read of ${path}`)
      yield* expect((yield* backend.write(path, "text")).path, "/a/b.txt", `write of ${path}`)
      const edited = yield* backend.edit(path, [{ old: "text", new: `${path} text` }])
      yield* expect(edited.path, "/a/b.txt", `edit of ${path}`)
      const [download] = yield* backend.download([path])
      yield* assert(
        download?.ok === true && download.path === "/a/b.txt",
        `download of ${path} gives /a/b.txt`,
        download
      )
      const [upload] = yield* backend.upload([{ path, content: bytesOf("text") }])
      yield* assert(
        upload?.ok === true && upload.path === "/a/b.txt" && upload.value.path === upload.path,
        `upload of ${path} gives /a/b.txt`,
        upload
      )
    }
    for (const path of ["a", "/a", "a/", "//a//", "./a/."]) {
      yield* expect(yield* listPaths(backend, path), ["/a/b.txt"], `ls of ${path}`)
      const globbed = yield* backend.glob({ pattern: "*", path })
      yield* expect(pathsOf(globbed), ["/a/b.txt"], `glob in ${path}`)
      const result = yield* backend.grep({ pattern: "t", path, mode: "files" })
      yield* expect(
        result.files.map((file) => file.path),
        ["/a/b.txt"],
        `grep in ${path}`
      )
    }
    for (const path of ["", ".", "/", "//", "./", "/."]) {
      yield* expect(yield* listPaths(backend, path), ["/a"], `ls of "${path}"`)
    }
  }),
  ["odd names are kept by listings, searches and transfers", keepsNames],
  ["odd names are kept by write, edit, read, move and delete", worksOnNames],
  rule("a deep path works", function* (backend) {
    const path = "/0123456789".repeat(270)
    yield* backend.write(path, "deep")
    yield* backend.edit(path, [{ old: "deep", new: "deeper" }])
    yield* expect(yield* readWhole(backend, path), "deeper", "what is deep is read")
    yield* expect(yield* listFiles(backend), [path], "it is found")
  }),
  rule("results are sorted by the code points of names, folder by folder", function* (backend) {
    const paths = [
      "/a",
      "/B",
      "/a.txt",
      "/a b/x",
      "/dir/b",
      "/dir.txt",
      "/dir/a/z",
      "/\uff5e",
      "/\u{1F600}",
      "/é",
      "/e\u0301x"
    ]
    const filePaths = paths.map((path) => (path === "/a" ? "/a/inside" : path))
    yield* putFiles(backend, Object.fromEntries([...filePaths].reverse().map((path) => [path, "x"])))
    const expected = [
        "/B", "/a/inside", "/a b/x", "/a.txt", "/dir/a/z", "/dir/b", "/dir.txt", "/e\u0301x", "/é", "/\uff5e", "/\u{1F600}"
      ] // prettier-ignore
    yield* expect(yield* listFiles(backend), expected, "the order of glob")
    const result = yield* backend.grep({ pattern: "x", mode: "files" })
    yield* expect(
      result.files.map(({ path }) => path),
      expected,
      "the order of grep"
    )
    const top = ["/B", "/a", "/a b", "/a.txt", "/dir", "/dir.txt", "/e\u0301x", "/é", "/\uff5e", "/\u{1F600}"]
    yield* expect(yield* listPaths(backend, "/"), top, "the order of ls")
  })
]

/** Names that a folding file system treats as equal. */
export const foldingRules: Rules<Service> = [
  rule("NFC and NFD, upper and lower case are different names", function* (backend) {
    const paths = ["/README", "/Readme", "/e\u0301", "/\u00e9"]
    yield* putFiles(backend, Object.fromEntries(paths.map((path) => [path, path])))
    yield* expect(yield* listFiles(backend), paths, "there are four files")
    for (const path of paths) yield* expect(yield* readWhole(backend, path), path, "each has its own content")
  })
]
