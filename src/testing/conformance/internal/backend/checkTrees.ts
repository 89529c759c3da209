/** Checks of listing, deleting and moving files and folders. */
import * as Effect from "effect/Effect"
import type { Service } from "../../../../core/Backend.ts"
import { fails, assert, expect } from "../assert.ts"
import { listFiles, putFiles, listPaths, rule, type Rules, readWhole } from "./common.ts"

const tree = { "/a/one": "1", "/a/b/two": "2", "/a/b/c/three": "3", "/ab/other": "4", "/top": "5" }

/** Checks of ls, delete and move. */
export const treeRules: Rules<Service> = [
  rule("ls gives what is in a folder, and no more", function* (backend) {
    yield* expect(yield* backend.ls("/"), { entries: [] }, "an empty root")
    yield* putFiles(backend, tree)
    const kinds = (path: string) =>
      Effect.map(backend.ls(path), ({ entries }) => entries.map((entry) => [entry.path, entry.kind]))
    yield* expect(
      yield* kinds("/"),
      [
        ["/a", "directory"],
        ["/ab", "directory"],
        ["/top", "file"]
      ],
      "ls of the root"
    )
    yield* expect(
      yield* kinds("/a"),
      [
        ["/a/b", "directory"],
        ["/a/one", "file"]
      ],
      "ls of a folder"
    )
    const sizes = (yield* backend.ls("/a")).entries.flatMap(({ kind, size }) => (kind === "file" ? [size] : []))
    yield* assert(
      sizes.every((size) => size === undefined || size === 1),
      "a size is in bytes",
      sizes
    )
    yield* fails(backend.ls("/top"), "ls of a file", "NotDirectory")
    yield* fails(backend.ls("/none"), "ls of nothing", "NotFound")
    yield* fails(backend.ls("/top/x"), "ls through a file", "NotFound", "NotDirectory")
  }),
  rule("dot files are listed", function* (backend) {
    yield* putFiles(backend, { "/.env": "x", "/.config/.hidden": "y" })
    yield* expect(yield* listPaths(backend, "/"), ["/.config", "/.env"], "ls of the root")
    yield* expect(yield* listPaths(backend, "/.config"), ["/.config/.hidden"], "ls of one")
  }),
  rule("delete takes a file, and a folder only with all that is in it", function* (backend) {
    yield* putFiles(backend, tree)
    yield* fails(backend.delete("/a"), "delete of a folder that is not empty", "IsDirectory")
    yield* fails(backend.delete("/none"), "delete of nothing", "NotFound")
    yield* fails(backend.delete("/none", { recursive: true }), "recursive delete of nothing", "NotFound")
    yield* fails(backend.delete("/top/x"), "delete through a file", "NotFound", "NotDirectory")
    for (const root of ["/", "", ".", "//"])
      for (const recursive of [false, true])
        yield* fails(backend.delete(root, { recursive }), `delete of the root as "${root}"`, "InvalidPath")
    yield* expect(
      yield* listFiles(backend),
      ["/a/b/c/three", "/a/b/two", "/a/one", "/ab/other", "/top"],
      "nothing is gone"
    )
  }),
  rule("delete takes what it is told, and no more", function* (backend) {
    yield* putFiles(backend, tree)
    yield* backend.delete("/a/one")
    yield* fails(backend.read("/a/one"), "read of what was deleted", "NotFound")
    yield* fails(backend.delete("/a/one"), "a second delete", "NotFound")
    yield* backend.delete("/a/b", { recursive: true })
    yield* expect(yield* listFiles(backend), ["/ab/other", "/top"], "what is left")
    yield* backend.delete("/top", { recursive: true })
    yield* expect(yield* listFiles(backend), ["/ab/other"], "recursive delete of a file")
  }),
  rule("an empty folder can be deleted, where there are such", function* (backend) {
    yield* putFiles(backend, { "/d/e/f": "x" })
    yield* backend.delete("/d/e/f")
    for (const path of ["/d/e", "/d"]) {
      const result = yield* Effect.result(backend.delete(path))
      yield* assert(
        result._tag === "Success" || result.failure.reason._tag === "NotFound",
        "an empty folder is deleted, or not there",
        result
      )
    }
    yield* expect((yield* backend.ls("/")).entries, [], "the root is empty")
  }),
  rule("move takes a file to a new place", function* (backend) {
    yield* putFiles(backend, tree)
    const { version } = yield* backend.read("/top")
    yield* backend.move("/top", "/new/folder/bottom")
    yield* fails(backend.read("/top"), "read of the old place", "NotFound")
    yield* expect(yield* readWhole(backend, "/new/folder/bottom"), "5", "the text at the new place")
    yield* assert(version !== "", "a version is something", version)
  }),
  rule("move takes a folder with all that is in it", function* (backend) {
    yield* putFiles(backend, tree)
    yield* backend.move("/a", "/z/y")
    yield* expect(
      yield* listFiles(backend),
      ["/ab/other", "/top", "/z/y/b/c/three", "/z/y/b/two", "/z/y/one"],
      "the files"
    )
    yield* expect(yield* readWhole(backend, "/z/y/b/c/three"), "3", "their content")
    yield* fails(backend.ls("/a"), "ls of the old place", "NotFound")
  }),
  rule("move overwrites nothing, and fails where it can't be meant", function* (backend) {
    yield* putFiles(backend, tree)
    yield* fails(backend.move("/top", "/a/one"), "move onto a file", "AlreadyExists")
    yield* fails(backend.move("/top", "/a"), "move onto a folder", "AlreadyExists")
    yield* fails(backend.move("/a", "/top"), "move of a folder onto a file", "AlreadyExists")
    yield* fails(backend.move("/a", "/ab"), "move of a folder onto a folder", "AlreadyExists")
    yield* fails(backend.move("/top", "/"), "move onto the root", "AlreadyExists", "InvalidPath")
    yield* fails(backend.move("/", "/x"), "move of the root", "InvalidPath")
    yield* fails(backend.move("/top", "/top"), "move onto itself", "InvalidPath")
    yield* fails(backend.move("/top", "//./top/"), "move onto itself in another spelling", "InvalidPath")
    yield* fails(backend.move("/a", "/a/b/c/d"), "move into itself", "InvalidPath")
    yield* fails(backend.move("/ab/other", "/top/x"), "move through a file", "NotDirectory")
    yield* fails(backend.move("/none", "/made/for/nothing"), "move of nothing", "NotFound")
    yield* expect(
      yield* listFiles(backend),
      ["/a/b/c/three", "/a/b/two", "/a/one", "/ab/other", "/top"],
      "nothing was changed"
    )
    const top = yield* listPaths(backend, "/")
    yield* expect(top, ["/a", "/ab", "/top"], "and nothing made")
  }),
  rule("move to a name that begins like the old one is no move into itself", function* (backend) {
    yield* putFiles(backend, { "/a/f": "x" })
    yield* backend.move("/a", "/ab")
    yield* backend.move("/ab", "/a")
    yield* expect(yield* listFiles(backend), ["/a/f"], "the files")
  })
]
