/** Checks of the files behind a backend: pipes, outside changes, odd names, denied access, a full disk. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import { fails, assert, expect, assertWithin } from "../assert.ts"
import { everyOperation } from "./checkPaths.ts"
import {
  listFiles,
  bytesOf,
  runWithoutDefect,
  putFiles,
  listPaths,
  pathsOf,
  rule,
  type Rules,
  readWhole
} from "./common.ts"
import type { Deny, FillDisk, Host } from "./subject.ts"

/** Checks that need the files behind a backend. */
export const hostRules = <H>(): Rules<Service, Host<H>, H | Scope.Scope> => [
  rule("a change behind the back of a backend is a Conflict, at the same size", function* (backend, host) {
    const { root } = yield* host.folders
    const { version } = yield* backend.write("/f", "aaa")
    yield* host.write(`${root}/f`, bytesOf("bbb"))
    yield* fails(backend.write("/f", "ccc", { version }), "a write with the old version", "Conflict")
    yield* fails(backend.edit("/f", [{ old: "bbb", new: "c" }], { version }), "an edit with it", "Conflict")
    yield* expect(yield* readWhole(backend, "/f"), "bbb", "the change is there")
  }),
  rule("write and edit keep the mode of a file", function* (backend, host) {
    const { root } = yield* host.folders
    yield* putFiles(backend, { "/run.sh": "echo one\n" })
    yield* host.chmod(`${root}/run.sh`, 0o754)
    yield* backend.edit("/run.sh", [{ old: "one", new: "two" }])
    yield* expect((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after an edit")
    yield* backend.write("/run.sh", "echo three\n")
    yield* expect((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after a write")
    yield* backend.upload([{ path: "/run.sh", content: bytesOf("echo four\n") }])
    yield* expect((yield* host.look(`${root}/run.sh`))?.mode, 0o754, "after an upload")
  }),
  rule(
    "nothing but the file is left on the disk by writes, edits and moves, done or failed",
    function* (backend, host) {
      const { outside: beside, root } = yield* host.folders
      yield* backend.write("/d/f", "one")
      yield* backend.edit("/d/f", [{ old: "one", new: "two" }])
      yield* backend.upload([{ path: "/d/f", content: bytesOf("three") }])
      yield* Effect.ignore(backend.edit("/d/f", [{ old: "one", new: "two" }]))
      yield* Effect.ignore(backend.write("/d/f", "x", { create: true }))
      yield* Effect.ignore(backend.write("/d", "x"))
      yield* Effect.ignore(backend.write("/d/f", "x", { version: "stale" }))
      yield* Effect.ignore(backend.move("/none", "/d/g"))
      yield* expect(yield* host.list(`${root}/d`), ["f"], "the folder")
      yield* expect(yield* host.list(root), ["d"], "the root")
      yield* expect(yield* host.list(beside), [], "beside the root")
    }
  ),
  rule("a named pipe hangs nothing", function* (backend, host) {
    const { root } = yield* host.folders
    yield* putFiles(backend, { "/d/file": "text" })
    yield* host.pipe(`${root}/d/pipe`)
    const bounded = <A, E, R>(what: string, effect: Effect.Effect<A, E, R>) =>
      assertWithin(5000, `${what} with a pipe`, Effect.timeoutOption(effect, "6 seconds"))
    for (const [operation, run] of everyOperation(backend, "/d/pipe"))
      if (!["delete", "move", "write", "upload"].includes(operation))
        yield* bounded(operation, runWithoutDefect(run, `${operation} of a pipe`))
    yield* bounded("grep", backend.grep({ pattern: "text" }))
    yield* expect((yield* backend.grep({ pattern: "text", mode: "files" })).files.length, 1, "the file is found")
    yield* bounded("glob", backend.glob({ pattern: "**" }))
    yield* bounded("ls", backend.ls("/d"))
    yield* bounded("delete", backend.delete("/d", { recursive: true }))
  }),
  rule("an ignore file that is a pipe, or a link, says nothing and hangs nothing", function* (backend, host) {
    const { outside, root } = yield* host.folders
    yield* putFiles(backend, { "/d/file": "text", "/e/file": "text" })
    yield* host.write(`${outside}/rules`, bytesOf("*\n"))
    yield* host.pipe(`${root}/.gitignore`)
    yield* host.pipe(`${root}/d/.gitignore`)
    yield* host.link(`${root}/e/.gitignore`, `${outside}/rules`)
    const listing = yield* assertWithin(5000, "glob", backend.glob({ pattern: "**/file" }))
    yield* expect(pathsOf(listing), ["/d/file", "/e/file"], "what glob finds")
    yield* expect(
      (yield* assertWithin(5000, "grep", backend.grep({ pattern: "text", mode: "files" }))).files.map(
        ({ path }) => path
      ),
      ["/d/file", "/e/file"],
      "what grep finds"
    )
  }),
  rule("names that no path can hold are no obstacle to what is beside them", function* (backend, host) {
    const { root } = yield* host.folders
    yield* putFiles(backend, { "/d/file": "text" })
    yield* host.write(`${root}/d/back\\slash`, bytesOf("text"))
    yield* host.write(`${root}/~home/x`, bytesOf("text"))
    const files = yield* listFiles(backend)
    yield* assert(files.includes("/d/file"), "glob finds the file", files)
    const paths = (yield* backend.grep({ pattern: "text", mode: "files" })).files.map(({ path }) => path)
    yield* assert(paths.includes("/d/file"), "grep finds the file", paths)
    const entries = yield* listPaths(backend, "/d")
    yield* assert(entries.includes("/d/file"), "ls gives the file", entries)
    yield* backend.delete("/d", { recursive: true })
    yield* expect(yield* host.look(`${root}/d`), undefined, "a recursive delete takes them too")
  }),
  rule("ignore files and repositories above the root do not count", function* (backend, host) {
    const { root } = yield* host.folders
    yield* host.write(`${root}/../.gitignore`, bytesOf("*\n"))
    yield* host.write(`${root}/../.ignore`, bytesOf("*\n"))
    yield* host.write(`${root}/../.git/info/exclude`, bytesOf("*\n"))
    yield* putFiles(backend, { "/file": "text", "/.gitignore": "x\n", "/x": "text" })
    const paths = (yield* backend.grep({ pattern: "text", mode: "files" })).files.map(({ path }) => path)
    yield* expect(paths, ["/file"], "grep")
    const files = pathsOf(yield* backend.glob({ pattern: "*" }))
    yield* expect(files, ["/.gitignore", "/file"], "glob")
  })
]

/** Checks of denied access. */
export const denyRules = <H>(): Rules<Service, Deny<H>, H | Scope.Scope> => [
  rule("what the system refuses is PermissionDenied, and no obstacle to what is beside it", function* (backend, deny) {
    yield* putFiles(backend, {
      "/open/file": "text",
      "/closed/file": "text",
      "/closed/in/file": "text",
      "/z": "text"
    })
    const body = Effect.gen(function* () {
      yield* deny("/closed")
      for (const path of ["/closed/file", "/closed/in/file", "/closed/new"])
        for (const [operation, run] of everyOperation(backend, path)) {
          const tags =
            path === "/closed/new" && !["write", "upload"].includes(operation)
              ? (["PermissionDenied", "NotFound"] as const)
              : (["PermissionDenied"] as const)
          if (operation === "move" || operation === "glob") continue
          yield* fails(run, `${operation} of ${path}, which is refused`, ...tags)
        }
      yield* fails(backend.ls("/closed"), "ls of what is refused", "PermissionDenied")
      yield* fails(backend.delete("/closed", { recursive: true }), "delete of what is refused", "PermissionDenied")
      yield* fails(backend.move("/z", "/closed/z"), "move into what is refused", "PermissionDenied")
      yield* fails(backend.move("/closed/file", "/y"), "move out of what is refused", "PermissionDenied")
      const top = yield* listPaths(backend, "/")
      yield* expect(top, ["/closed", "/open", "/z"], "ls of what is around it")
    })
    yield* Effect.scoped(body)
    yield* expect(
      yield* listFiles(backend),
      ["/closed/file", "/closed/in/file", "/open/file", "/z"],
      "all is there when it is allowed again"
    )
  }),
  rule("searches skip what the system refuses", function* (backend, deny) {
    yield* putFiles(backend, { "/open/file": "text", "/closed/file": "text", "/z": "text" })
    yield* deny("/closed")
    const open = (paths: ReadonlyArray<string>) => paths.filter((path) => !path.startsWith("/closed"))
    const result = yield* backend.grep({ pattern: "text", mode: "files" })
    yield* expect(open(result.files.map(({ path }) => path)), ["/open/file", "/z"], "grep")
    yield* expect(open(yield* listFiles(backend)), ["/open/file", "/z"], "glob")
  })
]

/** Checks of a full disk. */
export const diskRules = <H>(): Rules<Service, FillDisk<H>, H | Scope.Scope> => [
  rule("a disk that is full leaves every file as it was, and no half of a new one", function* (backend, fillDisk) {
    const large = "large ".repeat(50_000)
    yield* putFiles(backend, { "/kept.txt": "kept", "/d/other.txt": "other" })
    const { version } = yield* backend.read("/kept.txt")
    yield* fillDisk()
    yield* fails(backend.write("/kept.txt", large), "write of a file", "Unavailable")
    yield* fails(backend.edit("/kept.txt", [{ old: "kept", new: large }]), "edit of a file", "Unavailable")
    yield* fails(backend.write("/d/new.txt", large), "write of a new file", "Unavailable")
    const uploads = yield* backend.upload([
      { path: "/kept.txt", content: bytesOf(large) },
      { path: "/d/new.txt", content: bytesOf(large) },
      { path: "/../x", content: bytesOf(large) }
    ])
    yield* expect(
      uploads.map((one) => (one.ok ? "ok" : one.error.reason._tag)),
      ["Unavailable", "Unavailable", "OutsideRoot"],
      "uploads"
    )
    yield* expect(yield* readWhole(backend, "/kept.txt"), "kept", "the old content is there")
    yield* expect((yield* backend.read("/kept.txt")).version, version, "with its version")
    const entries = yield* listPaths(backend, "/d")
    yield* expect(entries, ["/d/other.txt"], "there is no half of a file")
    yield* backend.delete("/d/other.txt")
    yield* fails(backend.read("/d/other.txt"), "read of what was deleted", "NotFound")
  })
]
